package tressette

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/protobuf/proto"

	pb "github.com/tressette-arena/tressette-go/tressettev1"
)

const (
	patience       = 10 * time.Second // for a first connection, and for a Welcome
	leaveWithin    = 5 * time.Second  // for the Ending after a Goodbye
	backoffMin     = 50 * time.Millisecond
	backoffMax     = 2 * time.Second
	keepaliveEvery = 30 * time.Second // no arena wants them farther apart
	largest        = 64 << 20         // bytes of one message of the arena, which names no limit
	answerExtra    = 16               // bytes that an answer may take in a message beside its own
)

// session is one session with one address, over as many streams as it takes.
type session struct {
	options
	address, token string
	player         *player
	further        func(address string)

	welcome   *pb.Welcome // the last one
	positions map[string]uint32
	inbox     queue[news]
	outbox    queue[*pb.PlayRequest] // of one Answer each, or not answers
}

// run plays until the session is over.
func (s *session) run(ctx context.Context) error {
	s.positions = map[string]uint32{}
	s.inbox, s.outbox = newQueue[news](), newQueue[*pb.PlayRequest]()
	deciding := make(chan struct{})
	over := make(chan struct{})
	go s.decide(over, deciding)
	defer func() {
		close(over)
		<-deciding
	}()

	until := time.Now().Add(patience)
	for wait := backoffMin; ; wait = min(2*wait, backoffMax) {
		before := s.welcome
		lost := s.stream(ctx)
		if ended := new(Ended); lost == nil || errors.As(lost, &ended) && !ended.WillReturn {
			if lost == nil || ended.Reason == pb.ErrorReason_ERROR_REASON_SHUTTING_DOWN {
				return nil
			}
			if ended.Reason != pb.ErrorReason_ERROR_REASON_RESUME_UNKNOWN || s.welcome == nil {
				return ended
			}
			// The matches are lost, the arena is there: begin anew.
			s.log.Warn("the arena no longer knows the session", "arena", s.address)
			s.welcome = nil
			s.forget()
			until = time.Now().Add(patience)
			continue
		}
		if ctx.Err() != nil {
			return nil
		}
		if s.welcome != before { // there was a connection
			wait = backoffMin
			until = time.Now().Add(time.Duration(s.welcome.GetGraceMs()) * time.Millisecond)
		}
		pause := wait/2 + rand.N(wait)
		if time.Now().Add(pause).After(until) {
			return fmt.Errorf("tressette: connection to %s lost: %w", s.address, lost)
		}
		s.log.Warn("no connection", "arena", s.address, "cause", lost)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// stream plays over one stream until it ends: nil after our Goodbye, an Ended, or what broke it.
func (s *session) stream(ctx context.Context) error {
	s.outbox.take() // what an older stream did not send any more; open turns are asked again
	conn, err := grpc.NewClient(s.address, grpc.WithTransportCredentials(s.credentials(s.address)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveEvery, Timeout: patience}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largest)))
	if err != nil {
		return err
	}
	defer conn.Close()
	// Not ended by ctx: the arena is to be told first.
	streaming, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	late := time.AfterFunc(patience, cancel)
	unwelcome := context.AfterFunc(ctx, cancel)
	defer unwelcome()
	play, err := pb.NewArenaServiceClient(conn).Play(streaming)
	if err != nil {
		return err
	}
	if err := play.Send(&pb.PlayRequest{Message: &pb.PlayRequest_Hello{Hello: s.hello()}}); err != nil {
		return first(play, err)
	}
	opening, err := play.Recv()
	if err != nil {
		return err
	}
	late.Stop()
	unwelcome()
	if opening.GetEnding() != nil {
		return s.ending(ctx, opening.GetEnding())
	}
	welcome := opening.GetWelcome()
	if welcome == nil {
		return fmt.Errorf("tressette: the arena began with %T", opening.GetMessage())
	}
	if s.welcome != nil && !welcome.GetResumed() {
		s.forget()
	}
	s.welcome = welcome
	s.log.Info("connected", "arena", s.address, "name", welcome.GetName(), "resumed", welcome.GetResumed())
	for _, address := range welcome.GetAddresses() {
		s.further(address)
	}

	leaving := context.AfterFunc(ctx, func() {
		s.outbox.put(&pb.PlayRequest{Message: &pb.PlayRequest_Goodbye{Goodbye: &pb.Goodbye{}}})
		time.AfterFunc(leaveWithin, cancel)
	})
	defer leaving()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		s.sendAll(play, welcome)
	}()
	defer func() {
		cancel()
		<-sent
	}()
	for {
		message, err := play.Recv()
		if err != nil {
			return err
		}
		switch {
		case message.GetBatch() != nil:
			s.note(message.GetBatch())
			s.inbox.put(news{batch: message.GetBatch(), received: time.Now()})
		case message.GetPing() != nil:
			pong := &pb.Pong{Nonce: message.GetPing().GetNonce()}
			s.outbox.put(&pb.PlayRequest{Message: &pb.PlayRequest_Pong{Pong: pong}})
		case message.GetDrain() != nil:
			s.log.Info("no new matches", "arena", s.address, "message", message.GetDrain().GetMessage())
		case message.GetEnding() != nil:
			return s.ending(ctx, message.GetEnding())
		}
	}
}

// first is why a stream broke on which sending failed: gRPC tells it only to those who receive.
func first(play grpc.BidiStreamingClient[pb.PlayRequest, pb.PlayResponse], err error) error {
	if _, cause := play.Recv(); cause != nil {
		return cause
	}
	return err
}

func (s *session) ending(ctx context.Context, ending *pb.Ending) error {
	if ctx.Err() != nil {
		return nil
	}
	return &Ended{ending.GetReason(), ending.GetMessage(), ending.GetWillReturn()}
}

func (s *session) hello() *pb.Hello {
	hello := &pb.Hello{
		Token:       s.token,
		Label:       s.label,
		Version:     s.version,
		Client:      "go",
		MinProtocol: 1,
		MaxProtocol: 1,
		MaxMatches:  s.maxMatches,
		ResumeToken: s.welcome.GetResumeToken(),
	}
	for handle, last := range s.positions {
		hello.Positions = append(hello.Positions, &pb.MatchPosition{Handle: handle, LastEvent: last})
	}
	return hello
}

// note keeps where the running matches stand.
func (s *session) note(batch *pb.Batch) {
	for _, update := range batch.GetUpdates() {
		handle, events := update.GetHandle(), update.GetEvents()
		if n := len(events); n == 0 {
			s.positions[handle] += 0 // it may be new
		} else if events[n-1].GetMatchEnded() != nil {
			delete(s.positions, handle)
		} else {
			s.positions[handle] = update.GetFirstEvent() + uint32(n) - 1
		}
	}
}

// forget gives up all matches of the session.
func (s *session) forget() {
	clear(s.positions)
	s.outbox.take()
	s.inbox.put(news{forget: true})
}

// decide has the player answer what came, until the session is over.
func (s *session) decide(over <-chan struct{}, done chan<- struct{}) {
	defer close(done)
	table := table{player: s.player, matches: map[string]*Match{}, over: over, warn: s.log.Warn}
	table.send = func(answer *pb.Answer) {
		one := &pb.Answers{Answers: []*pb.Answer{answer}}
		s.outbox.put(&pb.PlayRequest{Message: &pb.PlayRequest_Answers{Answers: one}})
	}
	for {
		select {
		case <-over:
			for _, n := range append(s.inbox.take(), news{forget: true}) {
				table.take(n)
			}
			return
		case <-s.inbox.ready:
			for _, n := range s.inbox.take() {
				table.take(n)
			}
		}
	}
}

// sendAll sends what there is to send, answers that are there at one moment in one message, until the stream
// breaks. What is lost with it is asked for again.
func (s *session) sendAll(play grpc.BidiStreamingClient[pb.PlayRequest, pb.PlayResponse], welcome *pb.Welcome) {
	for {
		select {
		case <-play.Context().Done():
			return
		case <-s.outbox.ready:
		}
		for _, request := range gather(s.outbox.take(), welcome) {
			if play.Send(request) != nil || request.GetGoodbye() != nil {
				return
			}
		}
	}
}

// gather puts answers together, within the arena's limits, after all that is no answer.
func gather(requests []*pb.PlayRequest, welcome *pb.Welcome) []*pb.PlayRequest {
	var out []*pb.PlayRequest
	var together []*pb.Answer
	size := 0
	flush := func() {
		if len(together) > 0 {
			answers := &pb.Answers{Answers: together}
			out = append(out, &pb.PlayRequest{Message: &pb.PlayRequest_Answers{Answers: answers}})
			together, size = nil, 0
		}
	}
	for _, request := range requests {
		if request.GetAnswers() == nil {
			out = append(out, request)
		}
	}
	for _, request := range requests {
		for _, answer := range request.GetAnswers().GetAnswers() {
			more := proto.Size(answer) + answerExtra
			if len(together) == int(welcome.GetMaxAnswers()) || size+more > int(welcome.GetMaxMessageBytes()) {
				flush()
			}
			together = append(together, answer)
			size += more
		}
	}
	flush()
	return out
}
