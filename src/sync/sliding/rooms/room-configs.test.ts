import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { RequiredEntry } from './required-state.ts';
import { RoomConfigs } from './room-configs.ts';

const requested = (timeline_limit: number, ...types: string[]) => ({
  timeline_limit,
  required_state: types.map((type): [string, string] => [type, '']),
});
const newConfigs = () => new RoomConfigs('@me:test', 50);
const badJson = { status: 400, errcode: 'M_BAD_JSON' };

describe('RoomConfigs combines the lists and subscriptions of a request', () => {
  it('returns one object for equal lists and subscriptions, and for equal combinations', () => {
    const configs = newConfigs();
    const first = configs.of(requested(99, 'm.a', 'm.b'));
    const equal = configs.of(requested(50, 'm.b', 'm.a'));
    const second = configs.of(requested(1, 'm.c'));
    assert.equal(first, equal);
    assert.equal(first.timelineLimit, 50);
    const both = configs.combined(first, second);
    assert.equal(configs.combined(equal, second), both);
    assert.equal(configs.combined(second, first), both);
    assert.equal(configs.combined(both, second), both);
    assert.equal(configs.combined(first, first), first);
  });

  it('accepts 1,000 subscriptions of rooms that are also in five lists', () => {
    const configs = newConfigs();
    const types = Array.from({ length: 30 }, (_, index) => `m.room.type${index}`);
    const lists = types.slice(0, 5).map((type, index) => configs.of(requested(index, type, ...types)));
    for (let room = 0; room < 1_000; room++) {
      const inLists = lists.filter((_, index) => room & (1 << index));
      const config = inLists.reduce(
        (combined, config) => configs.combined(combined, config),
        configs.of(requested(50, 'm.room.name', ...types)),
      );
      assert.equal(config.timelineLimit, 50);
    }
  });

  it('rejects with M_BAD_JSON combinations of lists whose required states are larger than 1 MiB in total', () => {
    const configs = newConfigs();
    const state = (name: string): RequiredEntry[] => [[name.padEnd(250), name.padEnd(250)]];
    const lists = Array.from({ length: 60 }, (_, index) =>
      configs.of({ timeline_limit: 1, required_state: state(`${index}`) as [string, string][] }),
    );
    let combinedLength = 0;
    assert.throws(() => {
      for (let first = 0; first < 60; first++) {
        let config = lists[first]!;
        for (const list of lists.slice(first)) {
          config = configs.combined(config, list);
          combinedLength += config.state.text.length;
        }
      }
    }, badJson);
    assert.ok(combinedLength <= 1024 * 1024, `${combinedLength} characters`);
  });
});
