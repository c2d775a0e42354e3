import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { countedReads } from '../test/counted-reads.ts';
import { inWindows } from './windows.ts';

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);

describe('inWindows selects the rooms in the windows of a list', () => {
  const cases: [windows: Parameters<typeof inWindows>[1], expected: number[]][] = [
    [{}, numbers(10)],
    [{ ranges: null, range: [2, 3] }, [2, 3]],
    [{ ranges: [] }, []],
    [{ ranges: [[0, 2]], range: [5, 6] }, [0, 1, 2]],
    [
      {
        ranges: [
          [4, 6],
          [0, 1],
          [5, 7],
        ],
      },
      [0, 1, 4, 5, 6, 7],
    ],
    [
      {
        ranges: [
          [0, 8],
          [2, 3],
        ],
      },
      numbers(9),
    ],
    [{ ranges: [[8, Number.MAX_SAFE_INTEGER]] }, [8, 9]],
    [{ ranges: [[20, 30]] }, []],
    [{ ranges: [[5, 2]] }, []],
  ];
  for (const [windows, expected] of cases) {
    it(`returns ${expected.length > 0 ? `rooms ${expected.join(', ')}` : 'no room'} of ten for ${JSON.stringify(windows)}`, () => {
      assert.deepEqual(inWindows(numbers(10), windows), expected);
    });
  }

  it('reads each room at most once for 100 windows with all rooms', () => {
    const { items, reads } = countedReads(numbers(1_000));
    const ranges = numbers(100).map((first): [number, number] => [first, 999]);
    assert.equal(inWindows(items, { ranges }).length, 1_000);
    assert.ok(reads() <= 1_000, `${reads()} reads`);
  });
});
