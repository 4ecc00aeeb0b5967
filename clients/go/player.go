package tressette

import (
	"sync"
	"time"

	pb "github.com/tressette-arena/tressette-go/tressettev1"
)

// player calls the bot, for one session at a time.
type player struct {
	mu  sync.Mutex
	bot Bot
}

// news is what a session has to tell its player: a batch, or that all its matches are gone.
type news struct {
	batch    *pb.Batch
	received time.Time
	forget   bool
}

// table has the matches of one session.
type table struct {
	*player
	matches map[string]*Match
	over    <-chan struct{} // closed when turns need no answer any more
	send    func(*pb.Answer)
	warn    func(text string, args ...any)
}

func (t *table) take(n news) {
	if n.forget {
		for handle, match := range t.matches {
			t.end(handle, match, nil)
		}
		return
	}
	for _, e := range n.batch.GetErrors() {
		t.warn("refused by the arena", "reason", e.GetReason(), "message", e.GetMessage(),
			"match", e.GetHandle(), "turn", e.GetTurnId(), "field", e.GetField(), "again", e.GetMayRetry())
		match := t.matches[e.GetHandle()]
		if match != nil && match.answer != nil && match.answer.GetTurnId() == e.GetTurnId() {
			match.refused = &Refusal{e.GetReason(), e.GetMessage()}
		}
	}
	for _, update := range n.batch.GetUpdates() {
		t.update(update, n.received)
	}
}

func (t *table) update(update *pb.MatchUpdate, received time.Time) {
	match := t.matches[update.GetHandle()]
	if match == nil {
		started := update.GetStarted()
		if started == nil {
			t.warn("news of an unknown match", "match", update.GetHandle())
			return
		}
		match = newMatch(update.GetHandle(), started)
		t.matches[match.Handle] = match
		if b, ok := t.bot.(MatchStarter); ok {
			t.mu.Lock()
			b.MatchStarted(match)
			t.mu.Unlock()
		}
	}
	var end *pb.MatchEnded
	for i, event := range update.GetEvents() {
		if int(update.GetFirstEvent())+i <= len(match.Events) {
			continue // had before the connection was lost
		}
		match.Events = append(match.Events, event)
		if ended := event.GetMatchEnded(); ended != nil {
			end = ended
		}
	}
	if end != nil {
		t.end(match.Handle, match, end)
	} else if turn := update.GetTurn(); turn != nil {
		t.turn(match, turn, received)
	}
}

func (t *table) turn(match *Match, turn *pb.Turn, received time.Time) {
	select {
	case <-t.over:
		return
	default:
	}
	if match.answer.GetTurnId() != turn.GetTurnId() {
		match.refused = nil
	} else if match.refused == nil {
		// The connection was lost before the answer arrived. Asked again, the bot might draw another one.
		t.send(match.answer)
		return
	}
	t.mu.Lock()
	match.answer = respond(t.bot, match, turn, received)
	t.mu.Unlock()
	match.refused = nil
	t.send(match.answer)
}

func (t *table) end(handle string, match *Match, end *pb.MatchEnded) {
	delete(t.matches, handle)
	if b, ok := t.bot.(MatchEnder); ok {
		t.mu.Lock()
		b.MatchEnded(match, end)
		t.mu.Unlock()
	}
}
