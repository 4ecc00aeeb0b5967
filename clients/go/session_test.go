package tressette

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	pb "github.com/tressette-arena/tressette-go/tressettev1"
)

type stream = grpc.BidiStreamingServer[pb.PlayRequest, pb.PlayResponse]

// script is an arena that plays one function per stream.
type script struct {
	pb.UnimplementedArenaServiceServer
	streams chan func(stream) error
}

func (s *script) Play(play stream) error { return (<-s.streams)(play) }

// arena serves one stream after the other by these functions, and is where the bot finds it.
func arena(t *testing.T, streams ...func(stream) error) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &script{streams: make(chan func(stream) error, len(streams))}
	for _, f := range streams {
		s.streams <- f
	}
	server := grpc.NewServer()
	pb.RegisterArenaServiceServer(server, s)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	return listener.Addr().String()
}

// counting plays the first card and counts.
type counting struct {
	choices, started, ended int
	finished                int // ended as matches should
	refused                 []*Refusal
}

func (b *counting) Choose(view *View) Card {
	b.choices++
	b.refused = append(b.refused, view.Refused)
	return view.Legal.Cards[0]
}

func (b *counting) MatchStarted(*Match) { b.started++ }

func (b *counting) MatchEnded(_ *Match, end *pb.MatchEnded) {
	b.ended++
	if end != nil {
		b.finished++
	}
}

func quiet() Option { return WithLogger(slog.New(slog.DiscardHandler)) }

func welcome(w *pb.Welcome) *pb.PlayResponse {
	w.Protocol, w.MaxAnswers, w.MaxMessageBytes, w.ResumeToken = 1, 10, 1<<20, "again"
	return &pb.PlayResponse{Message: &pb.PlayResponse_Welcome{Welcome: w}}
}

func batch(b *pb.Batch) *pb.PlayResponse {
	return &pb.PlayResponse{Message: &pb.PlayResponse_Batch{Batch: b}}
}

func updates(u ...*pb.MatchUpdate) *pb.PlayResponse { return batch(&pb.Batch{Updates: u}) }

func ending(reason pb.ErrorReason) *pb.PlayResponse {
	return &pb.PlayResponse{Message: &pb.PlayResponse_Ending{Ending: &pb.Ending{Reason: reason}}}
}

func turn(id uint32) *pb.Turn {
	hand := []pb.Card{13, 40}
	return &pb.Turn{TurnId: id, View: &pb.SeatView{Hand: hand, Legal: &pb.LegalActions{Cards: hand}}}
}

func played(card pb.Card) *pb.Event {
	return &pb.Event{Kind: &pb.Event_CardPlayed{CardPlayed: &pb.CardPlayed{Card: card}}}
}

func matchEnded() *pb.Event {
	return &pb.Event{Kind: &pb.Event_MatchEnded{MatchEnded: &pb.MatchEnded{}}}
}

func started() *pb.MatchStarted { return &pb.MatchStarted{BotSeed: make([]byte, 32)} }

func TestPlaysAndAnswersPing(t *testing.T) {
	bot := &counting{}
	address := arena(t, func(play stream) error {
		first, _ := play.Recv()
		hello := first.GetHello()
		if hello.GetToken() != "secret" || hello.GetLabel() != "me" || hello.GetMaxMatches() != 3 {
			t.Errorf("hello: %v", hello)
		}
		play.Send(welcome(&pb.Welcome{}))
		play.Send(&pb.PlayResponse{Message: &pb.PlayResponse_Ping{Ping: &pb.Ping{Nonce: 7}}})
		if pong, _ := play.Recv(); pong.GetPong().GetNonce() != 7 {
			t.Errorf("pong: %v", pong)
		}
		play.Send(updates(&pb.MatchUpdate{Handle: "h", Started: started(), FirstEvent: 1,
			Events: []*pb.Event{played(1)}, Turn: turn(1)}))
		answers, _ := play.Recv()
		if a := answers.GetAnswers().GetAnswers(); len(a) != 1 || a[0].GetHandle() != "h" ||
			a[0].GetTurnId() != 1 || a[0].GetCard() != 13 {
			t.Errorf("answers: %v", answers)
		}
		// Refused: the same turn again, and the bot is told.
		play.Send(batch(&pb.Batch{Errors: []*pb.Error{{Reason: pb.ErrorReason_ERROR_REASON_CARD_NOT_HELD,
			Handle: "h", TurnId: 1, MayRetry: true}}}))
		play.Send(updates(&pb.MatchUpdate{Handle: "h", FirstEvent: 2, Turn: turn(1)}))
		play.Recv()
		play.Send(updates(&pb.MatchUpdate{Handle: "h", FirstEvent: 2, Events: []*pb.Event{matchEnded()}}))
		return play.Send(ending(pb.ErrorReason_ERROR_REASON_SHUTTING_DOWN))
	})
	err := Run(t.Context(), bot, address, "secret", WithLabel("me"), WithMaxMatches(3), quiet())
	if err != nil || bot.started != 1 || bot.finished != 1 || bot.choices != 2 {
		t.Errorf("%+v: %v", bot, err)
	}
	if bot.refused[0] != nil || bot.refused[1].Reason != pb.ErrorReason_ERROR_REASON_CARD_NOT_HELD {
		t.Errorf("refused: %v", bot.refused)
	}
}

func TestResumesWithPositionsAndDrawsNoCardTwice(t *testing.T) {
	bot := &counting{}
	address := arena(t, func(play stream) error {
		play.Recv()
		play.Send(welcome(&pb.Welcome{GraceMs: 5000}))
		play.Send(updates(
			&pb.MatchUpdate{Handle: "h", Started: started(), FirstEvent: 1,
				Events: []*pb.Event{played(1), played(2)}, Turn: turn(1)},
			&pb.MatchUpdate{Handle: "over", Started: started(), FirstEvent: 1, Events: []*pb.Event{matchEnded()}}))
		play.Recv()
		return errors.New("the cable is out")
	}, func(play stream) error {
		first, _ := play.Recv()
		hello := first.GetHello()
		positions := map[string]uint32{}
		for _, p := range hello.GetPositions() {
			positions[p.GetHandle()] = p.GetLastEvent()
		}
		if hello.GetResumeToken() != "again" || len(positions) != 1 || positions["h"] != 2 {
			t.Errorf("hello: %v", hello)
		}
		play.Send(welcome(&pb.Welcome{GraceMs: 5000, Resumed: true}))
		play.Send(updates(&pb.MatchUpdate{Handle: "h", Started: started(), FirstEvent: 3, Turn: turn(1)}))
		if again, _ := play.Recv(); again.GetAnswers().GetAnswers()[0].GetCard() != 13 {
			t.Errorf("answers: %v", again)
		}
		play.Send(updates(&pb.MatchUpdate{Handle: "h", FirstEvent: 3, Events: []*pb.Event{matchEnded()}}))
		return play.Send(ending(pb.ErrorReason_ERROR_REASON_SHUTTING_DOWN))
	})
	if err := Run(t.Context(), bot, address, "", quiet()); err != nil {
		t.Error(err)
	}
	if bot.choices != 1 || bot.started != 2 || bot.finished != 2 {
		t.Errorf("%+v", bot)
	}
}

func TestBeginsAnewWhereTheSessionIsForgotten(t *testing.T) {
	bot := &counting{}
	address := arena(t, func(play stream) error {
		play.Recv()
		play.Send(welcome(&pb.Welcome{GraceMs: 5000}))
		play.Send(updates(&pb.MatchUpdate{Handle: "h", Started: started(), FirstEvent: 1, Turn: turn(1)}))
		play.Recv()
		return errors.New("the cable is out")
	}, func(play stream) error {
		play.Recv()
		return play.Send(ending(pb.ErrorReason_ERROR_REASON_RESUME_UNKNOWN))
	}, func(play stream) error {
		first, _ := play.Recv()
		if hello := first.GetHello(); hello.GetResumeToken() != "" || len(hello.GetPositions()) != 0 {
			t.Errorf("hello: %v", hello)
		}
		play.Send(welcome(&pb.Welcome{}))
		return play.Send(ending(pb.ErrorReason_ERROR_REASON_SHUTTING_DOWN))
	})
	if err := Run(t.Context(), bot, address, "", quiet()); err != nil {
		t.Error(err)
	}
	if bot.started != 1 || bot.ended != 1 || bot.finished != 0 {
		t.Errorf("%+v", bot)
	}
}

func TestSaysGoodbye(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	address := arena(t, func(play stream) error {
		play.Recv()
		play.Send(welcome(&pb.Welcome{}))
		play.Send(&pb.PlayResponse{Message: &pb.PlayResponse_Ping{Ping: &pb.Ping{}}})
		play.Recv()
		cancel()
		if last, err := play.Recv(); last.GetGoodbye() == nil {
			t.Errorf("%v instead of a goodbye: %v", last, err)
		}
		return play.Send(ending(pb.ErrorReason_ERROR_REASON_UNSPECIFIED))
	})
	if err := Run(ctx, &counting{}, address, "", quiet()); err != nil {
		t.Error(err)
	}
}

func TestTellsWhyItEnded(t *testing.T) {
	address := arena(t, func(play stream) error {
		play.Recv()
		return play.Send(ending(pb.ErrorReason_ERROR_REASON_UNAUTHENTICATED))
	})
	err := Run(t.Context(), &counting{}, address, "wrong", quiet())
	var ended *Ended
	if !errors.As(err, &ended) || ended.Reason != pb.ErrorReason_ERROR_REASON_UNAUTHENTICATED {
		t.Error(err)
	}
}

func TestGivesUpAfterTheGrace(t *testing.T) {
	address := arena(t, func(play stream) error {
		play.Recv()
		play.Send(welcome(&pb.Welcome{GraceMs: 0}))
		return errors.New("the cable is out")
	})
	begun := time.Now()
	if err := Run(t.Context(), &counting{}, address, "", quiet()); err == nil || time.Since(begun) > 5*time.Second {
		t.Errorf("after %v: %v", time.Since(begun), err)
	}
}

func TestOpensASessionOnEveryAddress(t *testing.T) {
	end := func(w *pb.Welcome) func(stream) error {
		return func(play stream) error {
			play.Recv()
			play.Send(welcome(w))
			_, err := play.Recv() // until the other one is there
			if err == io.EOF {
				err = nil
			}
			return err
		}
	}
	arrived := make(chan struct{})
	other := arena(t, func(play stream) error {
		close(arrived)
		play.Recv()
		play.Send(welcome(&pb.Welcome{}))
		return play.Send(ending(pb.ErrorReason_ERROR_REASON_SHUTTING_DOWN))
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	if err := Run(ctx, &counting{}, arena(t, end(&pb.Welcome{Addresses: []string{other}})), "", quiet()); err != nil {
		t.Error(err)
	}
	select {
	case <-arrived:
	default:
		t.Error("nobody came to the other address")
	}
}

func TestGatherKeepsTheLimits(t *testing.T) {
	var requests []*pb.PlayRequest
	for id := range uint32(25) {
		one := &pb.Answers{Answers: []*pb.Answer{{Handle: "some handle", TurnId: id, Card: 1}}}
		requests = append(requests, &pb.PlayRequest{Message: &pb.PlayRequest_Answers{Answers: one}})
	}
	requests = append(requests, &pb.PlayRequest{Message: &pb.PlayRequest_Pong{Pong: &pb.Pong{}}})
	for _, limit := range []*pb.Welcome{{MaxAnswers: 10, MaxMessageBytes: 1 << 20}, {MaxAnswers: 100, MaxMessageBytes: 200}} {
		out := gather(requests, limit)
		if out[0].GetPong() == nil {
			t.Error("the pong is not first")
		}
		next := uint32(0)
		for _, request := range out[1:] {
			if n := len(request.GetAnswers().GetAnswers()); n > int(limit.GetMaxAnswers()) ||
				proto.Size(request) > int(limit.GetMaxMessageBytes()) {
				t.Errorf("%d answers, %d bytes", n, proto.Size(request))
			}
			for _, answer := range request.GetAnswers().GetAnswers() {
				if answer.GetTurnId() != next {
					t.Errorf("answer %d where %d was due", answer.GetTurnId(), next)
				}
				next++
			}
		}
		if next != 25 {
			t.Errorf("%d answers of 25", next)
		}
	}
}

func TestLoopback(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:1": true, "127.9.9.9:1": true, "[::1]:1": true, "localhost:1": true,
		"192.0.2.1:1": false, "arena.example:1": false, "[2001:db8::1]:1": false, "localhost.example:1": false,
	} {
		if loopback(address) != want {
			t.Errorf("%s: loopback %v", address, !want)
		}
	}
}
