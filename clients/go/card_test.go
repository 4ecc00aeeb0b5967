package tressette

import "testing"

func TestCardNotation(t *testing.T) {
	seen := map[string]bool{}
	for c := Card(1); c <= 40; c++ {
		if back, err := ParseCard(c.String()); err != nil || back != c || NewCard(c.Rank(), c.Suit()) != c {
			t.Errorf("%d is written %v, read back as %d: %v", int(c), c, int(back), err)
		}
		seen[c.String()] = true
	}
	if len(seen) != 40 {
		t.Errorf("%d texts for 40 cards", len(seen))
	}
	for text, want := range map[string]Card{"Ad": 1, "3c": 13, "Rb": 40} {
		if got, err := ParseCard(text); err != nil || got != want {
			t.Errorf("%s is read as %d: %v", text, int(got), err)
		}
	}
	for _, text := range []string{"", "3", "3cc", "1c", "3x", "c3"} {
		if _, err := ParseCard(text); err == nil {
			t.Errorf("%q is read as a card", text)
		}
	}
	if NoCard.String() != "-" || Card(41).Valid() {
		t.Error("what is no card passes for one")
	}
}

func TestCardStrengthAndValue(t *testing.T) {
	order, thirds := "32ARCF7654", 0
	for i := range order {
		card, err := ParseCard(order[i:i+1] + "s")
		if err != nil || card.Strength() != 9-i {
			t.Errorf("%v has strength %d, not %d: %v", card, card.Strength(), 9-i, err)
		}
		thirds += card.Thirds()
	}
	if thirds != 8 {
		t.Errorf("a suit is worth %d thirds, not 8", thirds)
	}
}
