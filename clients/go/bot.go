// Package tressette connects a bot to a Tressette arena.
//
// A bot is a type with one method, Choose; all else has a default that it may replace by having the method of
// one of the small interfaces beside [Bot]. [Main] makes a program of it, [Run] a part of a program.
package tressette

import (
	"cmp"
	"slices"
	"time"

	pb "github.com/tressette-arena/tressette-go/tressettev1"
)

// Bot chooses the cards. One bot plays all matches of its session, many at a time; its methods are called one
// after the other, never at once, so it needs no locks.
type Bot interface {
	// Choose returns one of view.Legal.Cards.
	Choose(view *View) Card
}

// Declarer chooses combinations to declare; without it all that are offered are declared.
type Declarer interface {
	// Declare returns any of view.Legal.Declarations, which is not empty.
	Declare(view *View) []*Declaration
}

// Discarder chooses the card that the dealer of three sets aside. Without it that is the strongest, the most
// valuable among equals, where points are avoided, and the weakest of those worth least where they are wanted.
type Discarder interface {
	// Discard returns one of view.Legal.Discards.
	Discard(view *View) Card
}

// MonteCaller is asked where a poor hand may void the deal; without it that is done where points are wanted.
type MonteCaller interface {
	// Monte tells whether to void the deal.
	Monte(view *View) bool
}

// OutCaller is asked where the seat may claim that its side has reached the target; without it, it does so when
// that is true.
type OutCaller interface {
	// CallOut tells whether to call out, in place of a card.
	CallOut(view *View) bool
}

// Signaller adds signals to the cards that it leads; without it there are none.
type Signaller interface {
	// Signal goes with the card that Choose returned.
	Signal(view *View, card Card) Signal
}

// MatchStarter is told of every match before its first turn.
type MatchStarter interface {
	// MatchStarted is called once.
	MatchStarted(match *Match)
}

// MatchEnder is told of the end of every match.
type MatchEnder interface {
	// MatchEnded is called once. The end is nil if the session was over before the match.
	MatchEnded(match *Match, end *pb.MatchEnded)
}

// respond asks the bot for its answer to one turn.
func respond(bot Bot, match *Match, turn *pb.Turn, received time.Time) *pb.Answer {
	view := newView(match, turn, received)
	answer := &pb.Answer{Handle: match.Handle, TurnId: turn.GetTurnId()}
	if len(view.Legal.Declarations) > 0 {
		for _, d := range declarations(bot, view) {
			// The arena knows the cards and points.
			answer.Declarations = append(answer.Declarations, &pb.Declaration{Combination: d.GetCombination()})
		}
	}
	switch {
	case view.Legal.CallOut && callOut(bot, view):
		answer.CallOut = true
	case view.Legal.Monte && monte(bot, view):
		answer.Monte = true
	case len(view.Legal.Discards) > 0:
		answer.Discard = pb.Card(discard(bot, view))
	case len(view.Legal.Cards) > 0:
		card := bot.Choose(view)
		answer.Card = pb.Card(card)
		if b, ok := bot.(Signaller); ok && view.Legal.Signals {
			answer.Signal = b.Signal(view, card)
		}
	}
	return answer
}

func declarations(bot Bot, view *View) []*Declaration {
	if b, ok := bot.(Declarer); ok {
		return b.Declare(view)
	}
	return view.Legal.Declarations
}

func callOut(bot Bot, view *View) bool {
	if b, ok := bot.(OutCaller); ok {
		return b.CallOut(view)
	}
	end, side := view.Match.Rules.GetFirstTo(), view.Match.Side(view.Match.Seat)
	if end == nil || side >= len(view.Totals) || side >= len(view.TakenThirds) {
		return false
	}
	// In sixths; of the cards only whole points count.
	return int(view.Totals[side])+int(view.TakenThirds[side]/3*6) >= int(end.GetTarget())*6
}

func monte(bot Bot, view *View) bool {
	if b, ok := bot.(MonteCaller); ok {
		return b.Monte(view)
	}
	return view.Match.Rules.GetObjective() == pb.Objective_OBJECTIVE_MOST
}

func discard(bot Bot, view *View) Card {
	if b, ok := bot.(Discarder); ok {
		return b.Discard(view)
	}
	// Both return the first in deck order among equals.
	if view.Match.Rules.GetObjective() == pb.Objective_OBJECTIVE_LEAST {
		return slices.MaxFunc(view.Legal.Discards, func(a, b Card) int {
			return cmp.Or(cmp.Compare(a.Strength(), b.Strength()), cmp.Compare(a.Thirds(), b.Thirds()))
		})
	}
	return slices.MinFunc(view.Legal.Discards, func(a, b Card) int {
		return cmp.Or(cmp.Compare(a.Thirds(), b.Thirds()), cmp.Compare(a.Strength(), b.Strength()))
	})
}
