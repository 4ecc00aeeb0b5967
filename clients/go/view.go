package tressette

import (
	"fmt"
	"math/rand/v2"
	"time"

	pb "github.com/tressette-arena/tressette-go/tressettev1"
)

// The protocol's own types, for what a bot that wants more than its turn has to know.
type (
	// Declaration is a combination: a bongioco or a napoletana.
	Declaration = pb.Declaration
	// Event is something that happened in a match.
	Event = pb.Event
	// RuleSet holds every option of the rules of a match.
	RuleSet = pb.RuleSet
	// Signal is a gesture of the leader of a trick.
	Signal = pb.Signal
)

// The signals.
const (
	NoSignal = pb.Signal_SIGNAL_UNSPECIFIED
	Busso    = pb.Signal_SIGNAL_BUSSO
	Volo     = pb.Signal_SIGNAL_VOLO
	Striscio = pb.Signal_SIGNAL_STRISCIO
)

// Match is one seat's match. A bot finds the same pointer in all the views of the match.
type Match struct {
	// Handle names this seat of this match.
	Handle string
	// Seat of the bot, 0 to Rules.Players - 1.
	Seat int
	// Started holds the rules' preset, the names, the clock and what else the arena said at the start.
	Started *pb.MatchStarted
	// Rules of the match.
	Rules *RuleSet
	// Rand is drawn from the match's seed. A bot that takes all its chance from it can be repeated.
	Rand *rand.Rand
	// Events so far, the first of them number 1.
	Events []*Event
	// State is the bot's own.
	State any

	answer  *pb.Answer // the last one
	refused *Refusal   // of that answer
}

func newMatch(handle string, started *pb.MatchStarted) *Match {
	var seed [32]byte
	copy(seed[:], started.GetBotSeed())
	return &Match{
		Handle:  handle,
		Seat:    int(started.GetSeat()),
		Started: started,
		Rules:   started.GetRules(),
		Rand:    rand.New(rand.NewChaCha8(seed)),
	}
}

// Side of a seat: the seat itself, or 0 (seats 0 and 2) or 1 (seats 1 and 3) in pairs.
func (m *Match) Side(seat int) int {
	if m.Rules.GetSides() == pb.Sides_SIDES_PAIRS {
		return seat % 2
	}
	return seat
}

// Legal is everything that a seat may answer.
type Legal struct {
	// Cards that may be played.
	Cards []Card
	// Declarations that may be made before the card.
	Declarations []*Declaration
	// Discards are the cards that the dealer of three may set aside.
	Discards []Card
	// CallOut, Monte and Signals tell whether the seat may call out, void the deal, add a signal.
	CallOut, Monte, Signals bool
}

// View is what a seat sees when it is asked.
type View struct {
	// Match that the turn belongs to.
	Match *Match
	// Hand of the seat, in deck order.
	Hand []Card
	// Table has the cards of the trick under way, as they were played.
	Table []Card
	// Leader is the seat that leads, or led, the trick under way.
	Leader int
	// Legal is what may be answered.
	Legal Legal
	// Totals by side in sixths of a point, declarations included; only where the seat may call out.
	Totals []int32
	// TakenThirds of a point by side in the tricks of this deal; only where the seat may call out.
	TakenThirds []uint32
	// Deadline for the answer to leave, or zero where there is none. What the network takes is not charged.
	Deadline time.Time
	// Refused says why the last answer to this same turn was refused; nil the first time.
	Refused *Refusal
}

// Refusal is why the arena refused an answer.
type Refusal struct {
	// Reason to act on.
	Reason pb.ErrorReason
	// Message for people.
	Message string
}

func (r *Refusal) String() string { return fmt.Sprintf("%v: %s", r.Reason, r.Message) }

func newView(m *Match, turn *pb.Turn, received time.Time) *View {
	seen, legal := turn.GetView(), turn.GetView().GetLegal()
	view := &View{
		Match:  m,
		Hand:   cards(seen.GetHand()),
		Table:  cards(seen.GetTable()),
		Leader: int(seen.GetLeader()),
		Legal: Legal{
			Cards:        cards(legal.GetCards()),
			Declarations: legal.GetDeclarations(),
			Discards:     cards(legal.GetDiscards()),
			CallOut:      legal.GetCallOut(),
			Monte:        legal.GetMonte(),
			Signals:      legal.GetSignals(),
		},
		Totals:      seen.GetTotals(),
		TakenThirds: seen.GetTakenThirds(),
		Refused:     m.refused,
	}
	if clock := turn.GetClock(); clock != nil {
		limit := time.Duration(int64(clock.GetMoveMs())+int64(clock.GetBankMs())) * time.Millisecond
		view.Deadline = received.Add(limit)
	}
	return view
}
