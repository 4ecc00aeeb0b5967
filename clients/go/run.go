package tressette

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	pb "github.com/tressette-arena/tressette-go/tressettev1"
)

// Ended is the error of a session that the arena ended for another reason than its own shutdown.
type Ended struct {
	// Reason to act on.
	Reason pb.ErrorReason
	// Message for people.
	Message string
	// WillReturn says that the arena means to be back and to know the session still.
	WillReturn bool
}

func (e *Ended) Error() string {
	return fmt.Sprintf("tressette: the arena ended the session: %v: %s", e.Reason, e.Message)
}

// Option changes how Run plays.
type Option func(*options)

type options struct {
	label, version string
	maxMatches     uint32
	tls            *tls.Config
	log            *slog.Logger
}

// WithLabel sets what the bot calls itself: 1 to 64 letters, digits, ".", "_", "-". It is TRESSETTE_BOT_NAME
// unless set, or else the name of the program.
func WithLabel(label string) Option { return func(o *options) { o.label = label } }

// WithVersion sets the bot's own version, which is kept in the record.
func WithVersion(version string) Option { return func(o *options) { o.version = version } }

// WithMaxMatches sets how many matches are played at once; 64 unless set.
func WithMaxMatches(n int) Option { return func(o *options) { o.maxMatches = uint32(max(n, 1)) } }

// WithTLS asks for TLS as configured, on loopback addresses too. Without it, TLS with the system's root
// certificates is used on all addresses but loopback ones.
func WithTLS(config *tls.Config) Option { return func(o *options) { o.tls = config } }

// WithLogger sets where connections lost and answers refused are told; slog.Default() unless set.
func WithLogger(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// Run connects the bot to the arena and plays until the arena shuts down (the error is nil), ends the session
// for another reason (an [*Ended]), or is lost for longer than it keeps a session. An empty address or token is
// taken from TRESSETTE_ADDRESS or TRESSETTE_TOKEN. When ctx is done, the bot takes its leave, its matches are
// given up, and the error is nil.
func Run(ctx context.Context, bot Bot, address, token string, opts ...Option) error {
	o := options{label: os.Getenv("TRESSETTE_BOT_NAME"), maxMatches: 64, log: slog.Default()}
	for _, opt := range opts {
		opt(&o)
	}
	if o.label == "" {
		o.label = programName()
	}
	if address == "" {
		address = os.Getenv("TRESSETTE_ADDRESS")
	}
	if token == "" {
		token = os.Getenv("TRESSETTE_TOKEN")
	}
	if address == "" {
		return errors.New("tressette: no address of an arena, and TRESSETTE_ADDRESS is not set")
	}

	// An arena may have further addresses; the bot has a session on each.
	var (
		running sync.WaitGroup
		mu      sync.Mutex // of all below
		known   = map[string]bool{}
		failed  []error
		player  = &player{bot: bot}
		open    func(address string)
	)
	open = func(address string) {
		mu.Lock()
		defer mu.Unlock()
		if known[address] {
			return
		}
		known[address] = true
		running.Go(func() {
			s := &session{address: address, token: token, options: o, player: player, further: open}
			if err := s.run(ctx); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = append(failed, err)
			}
		})
	}
	open(address)
	running.Wait()
	return errors.Join(failed...)
}

// Main runs the bot as a program and exits: with 0 when the arena shut down or the program was stopped by SIGINT
// or SIGTERM, with 2 for a wrong command line, with 1 for anything else. Its flags are shown by -help.
func Main(bot Bot, opts ...Option) {
	address := flag.String("address", "", "`HOST:PORT` of the arena (TRESSETTE_ADDRESS)")
	label := flag.String("label", "", "what the bot calls itself (TRESSETTE_BOT_NAME)")
	matches := flag.Int("max-matches", 0, "matches at once (64)")
	root := flag.String("tls-root", "", "`FILE` with the root certificates to trust; asks for TLS on loopback too")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "usage: %s [flags]; a token is taken from TRESSETTE_TOKEN\n", os.Args[0])
		flag.PrintDefaults()
	}
	flag.Parse()
	if *address == "" && os.Getenv("TRESSETTE_ADDRESS") == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if *label != "" {
		opts = append(opts, WithLabel(*label))
	}
	if *matches > 0 {
		opts = append(opts, WithMaxMatches(*matches))
	}
	if *root != "" {
		pem, err := os.ReadFile(*root)
		pool := x509.NewCertPool()
		if err == nil && !pool.AppendCertsFromPEM(pem) {
			err = fmt.Errorf("%s holds no certificate", *root)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		opts = append(opts, WithTLS(&tls.Config{RootCAs: pool}))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := Run(ctx, bot, *address, "", opts...)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (o *options) credentials(address string) credentials.TransportCredentials {
	if o.tls != nil {
		return credentials.NewTLS(o.tls)
	}
	if loopback(address) {
		return insecure.NewCredentials()
	}
	return credentials.NewTLS(&tls.Config{})
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// programName is the name of the program, as a label has to be.
func programName() string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, filepath.Base(os.Args[0]))
	return name[:min(len(name), 64)]
}
