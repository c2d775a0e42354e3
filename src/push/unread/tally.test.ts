import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { ReadUpTo } from '../../receipts/index.ts';
import { markList, marksIn } from '../test/marks.ts';
import type { UnreadMark } from '../unread-mark.ts';
import { type NewMarks, Tally } from './tally.ts';

const nothingRead = new ReadUpTo([]);

const mark = (stream: number, highlight = false): UnreadMark => ({
  stream,
  highlight,
  threadId: undefined,
  sentTs: stream,
});

/** @param marks newest first */
const newMarks = (marks: readonly UnreadMark[], changes: Partial<NewMarks> = {}): NewMarks => ({
  marks,
  dropsOlder: false,
  ownThreads: new Set(),
  redacted: new Set(),
  ...changes,
});

describe('Tally', () => {
  it('holds a thousand unread events: drops the oldest first, and highlights last', () => {
    const tally = new Tally(0, markList([]));
    tally.add(newMarks([mark(1, true)]), 1, nothingRead);
    for (let stream = 2; stream <= 1500; stream++) tally.add(newMarks([mark(stream)]), stream, nothingRead);
    assert.equal(tally.size, 1000);
    assert.equal(marksIn(tally)[0]?.stream, 1);
    assert.equal(marksIn(tally)[1]?.stream, 502);
    const highlights = Array.from({ length: 1200 }, (_, index) => mark(3000 - index, true));
    tally.add(newMarks(highlights), 3000, nothingRead);
    assert.equal(tally.size, 1000);
    assert.deepEqual(tally.counts(3000).highlight_count, 1000);
    assert.equal(marksIn(tally)[0]?.stream, 2001);
  });

  it('counts only the unread events up to a position', () => {
    const tally = new Tally(5, markList([mark(1), mark(2, true), mark(5)]));
    assert.equal(tally.counts(4).notification_count, 2);
    assert.equal(tally.counts(1).highlight_count, 0);
  });

  it('drops the events before a join', () => {
    const tally = new Tally(2, markList([mark(1), mark(2)]));
    tally.add(newMarks([mark(4)], { dropsOlder: true }), 5, nothingRead);
    assert.deepEqual(marksIn(tally), [mark(4)]);
    assert.equal(tally.upTo, 5);
  });

  it('drops events that were read, also when an evaluation with an older receipt has added them', () => {
    const tally = new Tally(5, markList([mark(1), mark(5)]));
    const read = new ReadUpTo([{ threadId: undefined, stream: 6 }]);
    tally.dropRead(read);
    assert.equal(tally.counts(5).notification_count, 0);
    tally.add(newMarks([mark(7), mark(6)]), 7, nothingRead);
    tally.dropRead(read);
    assert.deepEqual(marksIn(tally), [mark(7)]);
  });

  it('drops events that were sent before a time', () => {
    const tally = new Tally(0, markList([]));
    tally.add(newMarks([mark(9), mark(7), mark(8)]), 9, nothingRead);
    tally.dropExpired(7);
    assert.equal(tally.counts(9).notification_count, 3);
    tally.dropExpired(8);
    assert.equal(tally.counts(9).notification_count, 2);
    tally.add(newMarks([{ ...mark(10), sentTs: 6 }]), 10, nothingRead);
    tally.dropExpired(8);
    assert.equal(tally.counts(10).notification_count, 2);
    tally.dropExpired(Number.POSITIVE_INFINITY);
    assert.equal(tally.counts(10).notification_count, 0);
  });

  it('has the same counts after many additions of events as a tally that counts all events at once', () => {
    const kind = fc.record({
      highlight: fc.boolean(),
      threadId: fc.option(fc.constantFrom('$a', '$b'), { nil: undefined, freq: 2 }),
    });
    const addition = fc.record({
      marks: fc.oneof(
        { weight: 5, arbitrary: fc.array(kind, { maxLength: 3 }) },
        fc.array(kind, { minLength: 990, maxLength: 1_100 }),
      ),
      dropsOlder: fc.constantFrom(false, false, false, true),
      ownThreads: fc.constantFrom([], [], [], ['$a'], [undefined]),
      redacted: fc.array(fc.nat(50), { maxLength: 1 }),
      isCounted: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(addition, { maxLength: 12 }), (additions) => {
        const tally = new Tally(0, markList([]));
        let stream = 0;
        for (const { marks, dropsOlder, ownThreads, redacted, isCounted } of additions) {
          const changes = { dropsOlder, ownThreads: new Set(ownThreads), redacted: new Set(redacted) };
          const newestFirst = marks.map((fields) => ({ ...fields, stream: ++stream, sentTs: 0 })).reverse();
          tally.add(newMarks(newestFirst, changes), stream, nothingRead);
          assert.ok(tally.size <= 1000);
          const streams = marksIn(tally).map((mark) => mark.stream);
          assert.deepEqual(
            streams,
            [...streams].sort((a, b) => a - b),
          );
          const { threads, ...main } = new Tally(stream, markList(marksIn(tally))).counts(stream);
          if (!isCounted) continue;
          const { threads: updatedThreads, ...updatedMain } = tally.counts(stream);
          assert.deepEqual(updatedMain, main);
          assert.deepEqual([...updatedThreads].sort(), [...threads].sort());
        }
      }),
    );
  });
});
