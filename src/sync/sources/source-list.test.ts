import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { DeviceQueue, SyncSource } from '../../sync-contract/index.ts';
import { SourceList, timelineBit } from './source-list.ts';

const follow = () => undefined;

const source = (name: string, sections: Partial<SyncSource> = {}): SyncSource => ({
  name,
  follow,
  ...sections,
});

const accountData = (isSetByClients: boolean) => ({
  hasRooms: true,
  isSetByClients,
  since: async () => [],
  all: async () => [],
});

const queue: DeviceQueue = {
  isEmptyNow: () => true,
  acknowledge: async () => undefined,
  forSync: async () => ({ messages: [], position: 0 }),
};

describe('SourceList assigns bits to sources of syncs', () => {
  it('assigns to each source its own bit, and to no source the bit of the timeline', () => {
    const { all, everyBit } = new SourceList(['a', 'b', 'c'].map((name) => source(name)));
    const bits = [timelineBit, ...all.map(({ bit }) => bit)];
    assert.equal(new Set(bits).size, 4);
    for (const bit of bits) assert.equal(bit & (bit - 1), 0, 'one bit is set');
    assert.equal(
      bits.reduce((sum, bit) => sum + bit),
      everyBit,
    );
  });

  it('lists the sections of all sources in their order, each with the bit of its source', () => {
    const [first, second] = [accountData(false), accountData(true)];
    const list = new SourceList([
      source('a', { accountData: first }),
      source('b'),
      source('c', { accountData: second }),
    ]);
    const [a, , c] = list.all;
    assert.deepEqual(list.accountData, [
      { bit: a?.bit, section: first },
      { bit: c?.bit, section: second },
    ]);
    assert.equal(list.accountDataBits, (a?.bit ?? 0) | (c?.bit ?? 0));
    assert.equal(list.clientDataBits, c?.bit);
  });

  it('accepts 30 sources and rejects more', () => {
    const sources = Array.from({ length: 31 }, (_, index) => source(`${index}`));
    assert.ok(new SourceList(sources.slice(1)).everyBit > 0, 'no source has the sign bit');
    assert.throws(() => new SourceList(sources), /more than 30 sources/);
  });

  it('rejects two sources with the same name, and two queues of to-device messages', () => {
    assert.throws(() => new SourceList([source('a'), source('a')]), /same name/);
    assert.throws(
      () => new SourceList([source('a', { deviceQueue: queue }), source('b', { deviceQueue: queue })]),
      /have a queue/,
    );
  });
});
