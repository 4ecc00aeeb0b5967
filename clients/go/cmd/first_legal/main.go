// Command first_legal plays the first legal card in the order given.
package main

import tressette "github.com/tressette-arena/tressette-go"

type firstLegal struct{}

func (firstLegal) Choose(view *tressette.View) tressette.Card { return view.Legal.Cards[0] }

func main() { tressette.Main(firstLegal{}, tressette.WithVersion("1")) }
