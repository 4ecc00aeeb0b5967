package tressette

import (
	"testing"
	"time"

	pb "github.com/tressette-arena/tressette-go/tressettev1"
)

type plain struct{}

func (plain) Choose(view *View) Card { return view.Legal.Cards[0] }

// eager has every method there is.
type eager struct{ plain }

func (eager) Declare(view *View) []*Declaration { return nil }
func (eager) Discard(view *View) Card           { return view.Legal.Discards[1] }
func (eager) Monte(*View) bool                  { return true }
func (eager) CallOut(*View) bool                { return true }
func (eager) Signal(*View, Card) Signal         { return Busso }

func answer(bot Bot, legal *pb.LegalActions) *pb.Answer {
	return answerWhere(pb.Objective_OBJECTIVE_MOST, bot, &pb.SeatView{Legal: legal})
}

func answerWhere(objective pb.Objective, bot Bot, seen *pb.SeatView) *pb.Answer {
	rules := &pb.RuleSet{
		Players: 4, Objective: objective, Sides: pb.Sides_SIDES_PAIRS,
		End: &pb.RuleSet_FirstTo{FirstTo: &pb.FirstTo{Target: 11}},
	}
	match := newMatch("h", &pb.MatchStarted{Seat: 3, Rules: rules})
	return respond(bot, match, &pb.Turn{TurnId: 5, View: seen}, time.Now())
}

func TestAnswersOfAPlainBot(t *testing.T) {
	offered := &pb.Declaration{
		Combination: &pb.Declaration_Napoli{Napoli: pb.Suit_SUIT_COPPE}, Cards: []pb.Card{11, 12, 13}, Points: 3,
	}
	a := answer(plain{}, &pb.LegalActions{
		Cards: []pb.Card{13, 40}, Declarations: []*pb.Declaration{offered}, CallOut: true, Signals: true,
	})
	if a.GetCard() != 13 || a.GetSignal() != NoSignal || a.GetCallOut() || a.GetMonte() || a.GetTurnId() != 5 {
		t.Error(a)
	}
	if d := a.GetDeclarations(); len(d) != 1 || d[0].GetNapoli() != pb.Suit_SUIT_COPPE || d[0].GetPoints() != 0 {
		t.Error(a)
	}
}

func TestDefaultsDependOnTheObjective(t *testing.T) {
	// Cs, 3s, 3d, 4c: the strongest and the weakest worth nothing.
	discards := &pb.SeatView{Legal: &pb.LegalActions{Discards: []pb.Card{29, 23, 3, 14}}}
	monte := &pb.SeatView{Legal: &pb.LegalActions{Monte: true}}
	most, least := pb.Objective_OBJECTIVE_MOST, pb.Objective_OBJECTIVE_LEAST
	if a := answerWhere(most, plain{}, discards); a.GetDiscard() != 14 || a.GetCard() != 0 {
		t.Error(a)
	}
	if a := answerWhere(least, plain{}, discards); a.GetDiscard() != 23 {
		t.Error(a)
	}
	if !answerWhere(most, plain{}, monte).GetMonte() || answerWhere(least, plain{}, monte).GetMonte() {
		t.Error("the deal is to be voided where points are wanted, and only there")
	}
}

func TestCallsOutWhenItsSideIsThere(t *testing.T) {
	for _, c := range []struct {
		totals []int32
		taken  []uint32
		want   bool
	}{
		{[]int32{50, 60}, []uint32{30, 2}, false},
		{[]int32{50, 60}, []uint32{30, 3}, true},
		{[]int32{66, 65}, []uint32{30, 2}, false},
		{[]int32{0, 66}, []uint32{0, 0}, true},
	} {
		a := answerWhere(pb.Objective_OBJECTIVE_MOST, plain{}, &pb.SeatView{
			Legal: &pb.LegalActions{Cards: []pb.Card{1}, CallOut: true}, Totals: c.totals, TakenThirds: c.taken,
		})
		if a.GetCallOut() != c.want || (a.GetCard() == 0) != c.want {
			t.Errorf("%v with %v and %v", a, c.totals, c.taken)
		}
	}
}

func TestAnswersOfAnEagerBot(t *testing.T) {
	card := []pb.Card{13, 40}
	if a := answer(eager{}, &pb.LegalActions{Cards: card, CallOut: true}); !a.GetCallOut() || a.GetCard() != 0 {
		t.Error(a)
	}
	if a := answer(eager{}, &pb.LegalActions{Monte: true}); !a.GetMonte() {
		t.Error(a)
	}
	if a := answer(eager{}, &pb.LegalActions{Discards: card}); a.GetDiscard() != 40 {
		t.Error(a)
	}
	if a := answer(eager{}, &pb.LegalActions{Cards: card, Signals: true}); a.GetSignal() != Busso || a.GetCard() != 13 {
		t.Error(a)
	}
	if a := answer(eager{}, &pb.LegalActions{Cards: card}); a.GetSignal() != NoSignal {
		t.Error(a)
	}
}

func TestChanceIsDrawnFromTheSeed(t *testing.T) {
	one, other := newMatch("a", started()), newMatch("b", started())
	for range 10 {
		if one.Rand.Uint64() != other.Rand.Uint64() {
			t.Fatal("the same seed gives other numbers")
		}
	}
}
