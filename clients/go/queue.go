package tressette

import "sync"

// queue is a channel without a limit: the arena bounds what can be in it.
type queue[T any] struct {
	mu    *sync.Mutex
	items *[]T
	ready chan struct{} // has a value when items may be there
}

func newQueue[T any]() queue[T] {
	return queue[T]{new(sync.Mutex), new([]T), make(chan struct{}, 1)}
}

func (q queue[T]) put(item T) {
	q.mu.Lock()
	*q.items = append(*q.items, item)
	q.mu.Unlock()
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

func (q queue[T]) take() []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	items := *q.items
	*q.items = nil
	return items
}
