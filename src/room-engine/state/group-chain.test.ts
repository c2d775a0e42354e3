import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { runs } from '../../../test/support/inputs/thoroughness.ts';
import { type ChainLink, GroupChain } from './group-chain.ts';

/** Returns the links from a group to the root, as the database would return them. */
function linksTo(
  id: number,
  rows: ReadonlyMap<number, ChainLink & { prevId: number | undefined }>,
): ChainLink[] {
  const links: ChainLink[] = [];
  for (let next: number | undefined = id; next !== undefined; ) {
    const row = rows.get(next);
    if (!row) throw new Error(`group ${next} is missing`);
    links.push(row);
    next = row.prevId;
  }
  return links;
}

function stateOf(links: readonly ChainLink[]): Map<number, number> {
  const state = new Map<number, number>();
  for (const { delta } of [...links].reverse()) for (const [key, event] of delta) state.set(key, event);
  return state;
}

const changes = fc.array(fc.tuple(fc.nat(40), fc.nat(1_000_000)), { minLength: 1, maxLength: 200 });

test('GroupChain returns deltas whose sum is the state of each group, also when the chain is loaded again in between', () => {
  fc.assert(
    fc.property(changes, fc.nat(50), fc.nat(1_100), (list, reloadEvery, lead) => {
      const rows = new Map<number, ChainLink & { prevId: number | undefined }>();
      const expected = new Map<number, number>();
      let chain = new GroupChain();
      const filler = Array.from({ length: lead }, (_, index): [number, number] => [1_000 + index, index]);
      for (const [index, [key, event]] of [...filler, ...list].entries()) {
        if (reloadEvery > 0 && index % reloadEvery === 0 && chain.id !== undefined) {
          chain = new GroupChain(linksTo(chain.id, rows));
        }
        const row = chain.advance(index + 1, new Map([[key, event]]));
        rows.set(row.id, row);
        expected.set(key, event);
      }
      assert.deepEqual(
        [...stateOf(linksTo(chain.id ?? 0, rows))].sort(([a], [b]) => a - b),
        [...expected].sort(([a], [b]) => a - b),
      );
    }),
    { numRuns: runs(60) },
  );
});

test('GroupChain keeps chains short and stores each change about three times in a room with 10,000 members', () => {
  const rows = new Map<number, ChainLink & { prevId: number | undefined }>();
  const chain = new GroupChain();
  let stored = 0;
  let longest = 0;
  for (let member = 1; member <= 10_000; member++) {
    const row = chain.advance(member, new Map([[member, member]]));
    rows.set(row.id, row);
    stored += row.delta.size;
    if (member % 97 === 0) longest = Math.max(longest, linksTo(member, rows).length);
  }
  assert.ok(stored <= 10_000 * 3.1, `${stored} entries`);
  assert.ok(longest <= 31 * 3 + 1, `${longest} links`);
});
