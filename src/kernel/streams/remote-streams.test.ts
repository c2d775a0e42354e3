import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import fc from 'fast-check';
import { eagerClock } from '../../../test/support/clocks/eager-clock.ts';
import { systemClock } from '../clock.ts';
import { type Database, migrate, openDatabase } from '../database/index.ts';
import { silentLogger } from '../observability/index.ts';
import {
  type FactCodec,
  jsonFacts,
  LocalStreams,
  type PublishedFact,
  type PublishedRange,
  RemoteStreams,
  Stream,
  streamMigrations,
} from './index.ts';

interface Note {
  readonly text: string;
  readonly by: string | undefined;
}

/** A main process and a reader process, with the same streams and a bus between them. */
class TwoProcesses {
  readonly streams: LocalStreams;
  /** The streams of the main process. */
  readonly ofWriter = streamsOf();
  /** The streams of the process that follows. */
  readonly ofFollower = streamsOf();
  readonly remote: RemoteStreams;
  /** Ranges on the bus, as text. */
  readonly sent: string[] = [];
  readonly published: PublishedFact[] = [];
  /** Facts of the main process, in order: the stream's name, the fact and its position. */
  readonly written: (readonly [string, unknown, number])[] = [];
  /** Facts that the follower has delivered, in the same form. */
  readonly received: (readonly [string, unknown, number])[] = [];
  /** Ranges `(after, upTo]` of missing facts that the follower has read. */
  readonly gaps: (readonly [number, number])[] = [];
  /** How many of the next reads of missing facts fail. */
  failures = 0;

  constructor(streams: LocalStreams) {
    this.streams = streams;
    for (const { name, stream } of listOf(this.ofWriter)) {
      stream.subscribe((fact: unknown, position: number) => this.written.push([name, fact, position]));
    }
    for (const { name, stream } of listOf(this.ofFollower)) {
      stream.subscribe((fact: unknown, position: number) => {
        assert.equal(this.remote.current, position);
        this.received.push([name, fact, position]);
      });
    }
    streams.onPublish((range) => {
      this.published.push(...range.facts);
      this.sent.push(JSON.stringify(range));
    });
    this.remote = new RemoteStreams({
      current: streams.current,
      clock: eagerClock(),
      log: silentLogger,
      readMissing: async (after, upTo) => {
        this.gaps.push([after, upTo]);
        if (this.failures-- > 0) throw new Error('the database is not there');
        return this.published.filter(({ position }) => position > after && position <= upTo);
      },
    });
    this.remote.follow(...listOf(this.ofFollower).map(({ stream }) => stream));
  }

  /** Delivers the ranges on the bus. @param fate returns the copies of a range that arrive; by default one */
  deliver(fate: (text: string) => readonly string[] = (text) => [text]): void {
    for (const text of this.sent.splice(0)) {
      for (const copy of fate(text)) this.remote.receive(JSON.parse(copy) as PublishedRange);
    }
  }
}

function streamsOf() {
  return {
    notes: new Stream<Note>('notes', jsonFacts({ by: undefined })),
    words: new Stream<string>('words', jsonFacts()),
  };
}

const listOf = (streams: ReturnType<typeof streamsOf>) =>
  Object.entries(streams).map(([name, stream]) => ({ name, stream: stream as Stream<unknown> }));

describe('RemoteStreams', () => {
  let database: Database;
  before(async () => {
    database = await openDatabase({ kind: 'sqlite', path: ':memory:' }, { log: silentLogger });
    await migrate(database, streamMigrations);
  });
  after(() => database.close());
  const openWriter = () => LocalStreams.open({ database, clock: systemClock, log: silentLogger });

  it('delivers the facts of another process in the order of their positions, and moves current', async () => {
    const { streams, ofWriter, remote, ...two } = new TwoProcesses(await openWriter());
    const advances: number[] = [];
    remote.onAdvance((current) => advances.push(current));
    const [early, late] = streams.reserving((reserve) => [reserve(ofWriter.notes), reserve(ofWriter.words)]);
    late.complete('second');
    assert.deepEqual(two.sent, []);
    early.complete({ text: 'first', by: undefined });
    streams.announce(ofWriter.notes, { text: 'third', by: 'alice' });
    for (const text of two.sent) remote.receive(JSON.parse(text) as PublishedRange);
    await remote.settled();
    assert.deepEqual(two.received, two.written);
    assert.deepEqual(
      two.received.map(([, fact]) => fact),
      [{ text: 'first', by: undefined }, 'second', { text: 'third', by: 'alice' }],
    );
    assert.equal(remote.current, streams.current);
    assert.deepEqual(advances, [late.position, streams.current]);
  });

  it('delivers later facts, and tells the other listeners that current has moved, when one listener throws', async () => {
    const two = new TwoProcesses(await openWriter());
    const fail = () => {
      throw new Error('a mistake');
    };
    const advances: number[] = [];
    two.ofFollower.words.subscribe(fail);
    two.remote.onAdvance(fail);
    two.remote.onAdvance((current) => advances.push(current));
    for (const word of ['first', 'second']) {
      two.streams.announce(two.ofWriter.words, word);
      two.deliver();
      await two.remote.settled();
    }
    assert.deepEqual(two.received, two.written);
    assert.equal(advances.at(-1), two.streams.current);
    assert.equal(advances.length, 2);
  });

  it('skips abandoned positions and streams that it does not follow', async () => {
    const two = new TwoProcesses(await openWriter());
    const other = new Stream<string>('other', jsonFacts());
    two.streams.reserving((reserve) => reserve(other)).abandon();
    two.streams.announce(other, 'not for here');
    two.deliver();
    await two.remote.settled();
    assert.deepEqual(two.received, []);
    assert.equal(two.remote.current, two.streams.current);
  });

  it('reads a lost range from the database before it delivers later facts', async () => {
    const two = new TwoProcesses(await openWriter());
    const before = two.streams.current;
    two.streams.announce(two.ofWriter.words, 'lost');
    two.sent.length = 0;
    two.failures = 2;
    two.streams.announce(two.ofWriter.words, 'came');
    two.deliver();
    await two.remote.settled();
    assert.deepEqual(
      two.received.map(([, fact]) => fact),
      ['lost', 'came'],
    );
    assert.deepEqual(
      two.gaps,
      [1, 2, 3].map(() => [before, before + 1]),
    );
  });

  it('detects from a range without facts that the range before it was lost', async () => {
    const two = new TwoProcesses(await openWriter());
    two.streams.announce(two.ofWriter.words, 'lost');
    two.sent.length = 0;
    const { current } = two.streams;
    two.remote.receive({ after: current, upTo: current, facts: [] });
    await two.remote.settled();
    assert.deepEqual(two.received, two.written);
    assert.equal(two.remote.current, current);
  });

  it('reports a gap whose facts cannot be read again, and delivers nothing after it', async () => {
    const lost: string[] = [];
    const received: string[] = [];
    const stream = new Stream<string>('words', jsonFacts());
    stream.subscribe((fact) => received.push(fact));
    const onLost = ({ message }: Error) => lost.push(message);
    const remote = new RemoteStreams({ current: 0, clock: eagerClock(), log: silentLogger, onLost });
    remote.follow(stream);
    const range = (position: number): PublishedRange => ({
      after: position - 1,
      upTo: position,
      facts: [{ stream: 'words', position, fact: `${position}` }],
    });
    remote.receive(range(1));
    remote.receive(range(3));
    remote.receive(range(4));
    await remote.settled();
    remote.receive(range(5));
    await remote.settled();
    assert.deepEqual(received, ['1']);
    assert.equal(remote.current, 1);
    assert.deepEqual(lost, ['the facts in (1, 2] of the streams are lost']);
  });

  it('delivers the facts of a stream that arrived before it followed the stream', async () => {
    const { streams, ofWriter, remote } = new TwoProcesses(await openWriter());
    const early = new RemoteStreams({ current: streams.current, clock: eagerClock(), log: silentLogger });
    streams.onPublish((range) => early.receive(range));
    streams.announce(ofWriter.words, 'early');
    await early.settled();
    const words = new Stream<string>('words', jsonFacts());
    const received: string[] = [];
    words.subscribe((fact) => received.push(fact));
    early.follow(words);
    await early.settled();
    assert.deepEqual(received, ['early']);
    await remote.settled();
  });

  it('tries again to decode a fact that it could not decode, and skips no fact', async () => {
    let attempts = 0;
    const codec: FactCodec<string> = {
      encode: (fact) => fact,
      decode: async (json) => {
        attempts++;
        if (attempts === 1) throw new Error('the event is not there yet');
        return json as string;
      },
    };
    const stream = new Stream('slow', codec);
    const received: string[] = [];
    stream.subscribe((fact) => received.push(fact));
    const readMissing = async () => [];
    const deps = { current: 0, clock: eagerClock(), log: silentLogger, readMissing };
    const remote = new RemoteStreams(deps);
    remote.follow(stream);
    remote.receive({
      after: 0,
      upTo: 2,
      facts: [1, 2].map((at) => ({ stream: 'slow', position: at, fact: `${at}` })),
    });
    await remote.settled();
    assert.deepEqual(received, ['1', '2']);
    assert.equal(attempts, 3);
  });

  it('delivers later facts after a listener has thrown', async () => {
    const two = new TwoProcesses(await openWriter());
    two.ofFollower.words.subscribe(() => {
      throw new Error('a mistake');
    });
    two.streams.announce(two.ofWriter.words, 'a');
    two.streams.announce(two.ofWriter.words, 'b');
    two.deliver();
    await two.remote.settled();
    assert.equal(two.remote.current, two.streams.current);
    assert.equal(two.received.length, 2);
  });

  it('leaves out a range with a fact that could not be encoded, so that the other process detects a gap', async () => {
    const streams = await openWriter();
    const broken: FactCodec<string> = {
      encode: () => {
        throw new Error('no JSON');
      },
      decode: (json) => json as string,
    };
    const ranges: PublishedRange[] = [];
    const first = streams.current;
    streams.onPublish((range) => ranges.push(range));
    streams.announce(new Stream('broken', broken), 'lost');
    streams.announce(new Stream<string>('words', jsonFacts()), 'came');
    assert.deepEqual(ranges, [
      { after: first + 1, upTo: first + 2, facts: [{ stream: 'words', position: first + 2, fact: 'came' }] },
    ]);
  });

  it('delivers every fact once and in order, whatever the bus loses and repeats', async () => {
    const steps = fc.array(
      fc.record({
        stream: fc.constantFrom('notes' as const, 'words' as const),
        text: fc.string(),
        by: fc.option(fc.string(), { nil: undefined }),
        settles: fc.constantFrom('at once', 'at the end', 'never'),
        fate: fc.constantFrom('comes', 'is lost', 'comes twice'),
      }),
      { maxLength: 60 },
    );
    await fc.assert(
      fc.asyncProperty(steps, async (plan) => {
        const two = new TwoProcesses(await openWriter());
        const late: (() => void)[] = [];
        for (const { stream, text, by, settles, fate } of plan) {
          two.streams.reserving((reserve) => {
            const endings =
              stream === 'notes'
                ? endingsOf(reserve(two.ofWriter.notes), { text, by })
                : endingsOf(reserve(two.ofWriter.words), text);
            if (settles === 'at once') endings.done();
            else late.push(settles === 'never' ? endings.abandon : endings.done);
          });
          two.deliver((range) => (fate === 'comes' ? [range] : fate === 'is lost' ? [] : [range, range]));
        }
        for (const settle of late) settle();
        two.deliver();
        const { current } = two.streams;
        two.remote.receive({ after: current, upTo: current, facts: [] });
        await two.remote.settled();
        assert.deepEqual(two.received, two.written);
        assert.equal(two.remote.current, current);
      }),
      { numRuns: 60 },
    );
  });
});

/** Returns the two ways to end a reservation, as functions without parameters. */
function endingsOf<F>(reservation: { complete(fact: F): void; abandon(): void }, fact: F) {
  return { done: () => reservation.complete(fact), abandon: () => reservation.abandon() };
}
