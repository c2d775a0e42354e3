import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { AccountDataItem } from '../../sync-contract/index.ts';
import type { SourceList } from '../sources/source-list.ts';
import { accountDataSince, textOf } from './account-data.ts';

it('a first sync lets other requests run while megabytes of account data are written as JSON', async () => {
  const items = Array.from({ length: 20 }, (_, index) => ({
    roomId: undefined,
    type: `org.example.${index}`,
    content: { text: 'x'.repeat(200_000) },
  })) as unknown as AccountDataItem[];
  const sources = {
    accountData: [{ bit: 1, section: { all: async () => items } }],
    accountDataBits: 1,
  } as unknown as Pick<SourceList, 'accountData' | 'accountDataBits'>;
  let turns = 0;
  const nextTurn = () => {
    turns++;
    setImmediate(nextTurn).unref();
  };
  setImmediate(nextTurn).unref();
  const range = { since: undefined, upTo: 1, changes: undefined, fullState: false };
  const read = await accountDataSince(sources, '@alice:test', range);
  assert.ok(turns >= 8, `${turns} turns of the event loop`);
  assert.equal(read.length, 20);
  assert.equal(textOf(items[3]!), JSON.stringify({ type: 'org.example.3', content: items[3]!.content }));
});
