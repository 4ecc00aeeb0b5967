from tressette_bot import Bot, Card, View, run


class TenLines(Bot):
    name = "ten-lines"

    def choose(self, view: View) -> Card:  # always the first card that may be played
        return view.legal[0]


run(TenLines())
