package tressette

import (
	"fmt"
	"strings"

	pb "github.com/tressette-arena/tressette-go/tressettev1"
)

// Suit is one of the four Italian suits.
type Suit int

// The suits, in deck order.
const (
	Denari Suit = iota
	Coppe
	Spade
	Bastoni
)

// Rank is one of the ten ranks.
type Rank int

// The ranks, in deck order, which is not their order in play: see [Card.Strength].
const (
	Asso Rank = iota
	Due
	Tre
	Quattro
	Cinque
	Sei
	Sette
	Fante
	Cavallo
	Re
)

const (
	suits = "dcsb"
	ranks = "A234567FCR"
)

// Letter is how the suit is written: d, c, s or b.
func (s Suit) Letter() string { return letter(suits, int(s)) }

// Letter is how the rank is written: A, 2 to 7, F, C or R.
func (r Rank) Letter() string { return letter(ranks, int(r)) }

func letter(all string, i int) string {
	if i < 0 || i >= len(all) {
		return "?"
	}
	return all[i : i+1]
}

// Card is one of the 40 cards, 1 to 40 in deck order. The zero value is no card.
type Card int

// NoCard stands where there is no card, or none that may be known.
const NoCard Card = 0

// NewCard is the card of this rank and suit.
func NewCard(rank Rank, suit Suit) Card { return Card(10*int(suit) + int(rank) + 1) }

// ParseCard reads a card as String writes it.
func ParseCard(text string) (Card, error) {
	if len(text) == 2 {
		rank, suit := strings.IndexByte(ranks, text[0]), strings.IndexByte(suits, text[1])
		if rank >= 0 && suit >= 0 {
			return NewCard(Rank(rank), Suit(suit)), nil
		}
	}
	return NoCard, fmt.Errorf("tressette: %q is no card", text)
}

// Valid tells whether the card is one of the 40.
func (c Card) Valid() bool { return c >= 1 && c <= 40 }

// Suit of the card, which must be valid.
func (c Card) Suit() Suit { return Suit((c - 1) / 10) }

// Rank of the card, which must be valid.
func (c Card) Rank() Rank { return Rank((c - 1) % 10) }

// Strength orders the cards of one suit: 9 for the tre, which beats all, then due, asso, re, cavallo, fante,
// 7, 6, 5, and 0 for the 4. The card must be valid.
func (c Card) Strength() int { return (int(c.Rank()) + 7) % 10 }

// Thirds is the card's usual value in thirds of a point: 3 for an asso, 1 for due, tre and figures, else 0.
// Rules may give the asso di bastoni more. The card must be valid.
func (c Card) Thirds() int {
	switch c.Rank() {
	case Asso:
		return 3
	case Due, Tre, Fante, Cavallo, Re:
		return 1
	}
	return 0
}

// String writes the card in two letters, such as 3c or Rb; what is no card as "-".
func (c Card) String() string {
	if !c.Valid() {
		return "-"
	}
	return c.Rank().Letter() + c.Suit().Letter()
}

func cards(of []pb.Card) []Card {
	out := make([]Card, len(of))
	for i, c := range of {
		out[i] = Card(c)
	}
	return out
}
