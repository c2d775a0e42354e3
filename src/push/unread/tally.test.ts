import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { ReadUpTo } from '../../receipts/index.ts';
import { type NewMarks, Tally, type UnreadMark } from './tally.ts';

const unread = new ReadUpTo([]);

const mark = (stream: number, highlight = false): UnreadMark => ({ stream, highlight, threadId: undefined });

const found = (marks: readonly UnreadMark[], more: Partial<NewMarks> = {}): NewMarks => ({
  marks,
  startsAnew: false,
  ownThreads: new Set(),
  redacted: new Set(),
  ...more,
});

describe('a tally', () => {
  it('holds a thousand marks: drops the oldest first, and highlights last', () => {
    const tally = new Tally(0, []);
    tally.add(found([mark(1, true)]), 1, unread);
    for (let stream = 2; stream <= 1500; stream++) tally.add(found([mark(stream)]), stream, unread);
    assert.equal(tally.marks.length, 1000);
    assert.equal(tally.marks[0]?.stream, 1);
    assert.equal(tally.marks[1]?.stream, 502);
    const highlights = Array.from({ length: 1200 }, (_, index) => mark(3000 - index, true));
    tally.add(found(highlights), 3000, unread);
    assert.equal(tally.marks.length, 1000);
    assert.deepEqual(tally.counts(3000).highlight_count, 1000);
    assert.equal(tally.marks[0]?.stream, 2001);
  });

  it('counts up to a position', () => {
    const tally = new Tally(5, [mark(1), mark(2, true), mark(5)]);
    assert.equal(tally.counts(4).notification_count, 2);
    assert.equal(tally.counts(1).highlight_count, 0);
  });

  it('starts from zero after a join', () => {
    const tally = new Tally(2, [mark(1), mark(2)]);
    tally.add(found([mark(4)], { startsAnew: true }), 5, unread);
    assert.deepEqual(tally.marks, [mark(4)]);
    assert.equal(tally.upTo, 5);
  });

  it('drops marks of events that were read, also when they were counted by an older receipt', () => {
    const tally = new Tally(5, [mark(1), mark(5)]);
    const read = new ReadUpTo([{ threadId: undefined, stream: 6 }]);
    tally.drop(read);
    assert.equal(tally.counts(5).notification_count, 0);
    tally.add(found([mark(7), mark(6)]), 7, unread);
    tally.drop(read);
    assert.deepEqual(tally.marks, [mark(7)]);
  });

  it('has the same counts after many small evaluations as after one of all events', () => {
    const kind = fc.record({
      highlight: fc.boolean(),
      threadId: fc.option(fc.constantFrom('$a', '$b'), { nil: undefined, freq: 2 }),
    });
    const addition = fc.record({
      marks: fc.oneof(
        { weight: 5, arbitrary: fc.array(kind, { maxLength: 3 }) },
        fc.array(kind, { minLength: 990, maxLength: 1_100 }),
      ),
      startsAnew: fc.constantFrom(false, false, false, true),
      ownThreads: fc.constantFrom([], [], [], ['$a'], [undefined]),
      redacted: fc.array(fc.nat(50), { maxLength: 1 }),
      looks: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(addition, { maxLength: 12 }), (additions) => {
        const tally = new Tally(0, []);
        let stream = 0;
        for (const { marks, startsAnew, ownThreads, redacted, looks } of additions) {
          const more = { startsAnew, ownThreads: new Set(ownThreads), redacted: new Set(redacted) };
          const newestFirst = marks.map((one) => ({ ...one, stream: ++stream })).reverse();
          tally.add(found(newestFirst, more), stream, unread);
          assert.ok(tally.marks.length <= 1000);
          const streams = tally.marks.map((one) => one.stream);
          assert.deepEqual(
            streams,
            [...streams].sort((a, b) => a - b),
          );
          const { threads, ...main } = new Tally(stream, tally.marks).counts(stream);
          if (!looks) continue;
          const { threads: goneAlong, ...mainGoneAlong } = tally.counts(stream);
          assert.deepEqual(mainGoneAlong, main);
          assert.deepEqual([...goneAlong].sort(), [...threads].sort());
        }
      }),
    );
  });
});
