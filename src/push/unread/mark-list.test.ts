import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { markList } from '../test/marks.ts';
import type { UnreadMark } from '../unread-mark.ts';
import { MarkList } from './mark-list.ts';

const all = (list: MarkList): UnreadMark[] =>
  Array.from({ length: list.length }, (_, index) => list.at(index));

describe('MarkList', () => {
  it('has the marks that an array would have after any additions and removals, also after it was stored', () => {
    const mark = fc.record({
      highlight: fc.boolean(),
      threadId: fc.option(fc.constantFrom('$a', '$b'), { nil: undefined }),
      sentTs: fc.constantFrom(1, 5, 1_700_000_000_000.5, Number.POSITIVE_INFINITY),
    });
    const step = fc.oneof(
      { weight: 6, arbitrary: mark.map((fields) => ({ kind: 'push' as const, fields })) },
      fc.constant({ kind: 'shift' as const }),
      fc.nat(3).map((rest) => ({ kind: 'keep' as const, rest })),
      fc.constant({ kind: 'clear' as const }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.boolean(), (steps, keepsTimes) => {
        const list = new MarkList(keepsTimes);
        let expected: UnreadMark[] = [];
        let stream = 0;
        for (const one of steps) {
          if (one.kind === 'push') {
            const pushed = { ...one.fields, stream: ++stream };
            list.push(pushed);
            expected.push(keepsTimes ? pushed : { ...pushed, sentTs: Number.POSITIVE_INFINITY });
          } else if (one.kind === 'shift') {
            list.shift();
            expected.shift();
          } else if (one.kind === 'keep') {
            list.keep((index) => list.streamAt(index) % 4 !== one.rest);
            expected = expected.filter((kept) => kept.stream % 4 !== one.rest);
          } else {
            list.clear();
            expected = [];
          }
          assert.deepEqual(all(list), expected);
        }
        if (keepsTimes) assert.equal(list.bytes, markList(expected).bytes);
        assert.deepEqual(all(MarkList.fromStored(JSON.parse(JSON.stringify(list.toStored())))), expected);
      }),
    );
  });
});
