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

describe('RoomConfigs', () => {
  it('returns one object for equal lists and subscriptions, and for equal combinations', () => {
    const configs = newConfigs();
    const [one, same, other] = [
      configs.of(requested(99, 'm.a', 'm.b')),
      configs.of(requested(50, 'm.b', 'm.a')),
      configs.of(requested(1, 'm.c')),
    ];
    assert.equal(one, same);
    assert.equal(one.timelineLimit, 50);
    const both = configs.combined(one, other);
    assert.equal(configs.combined(same, other), both);
    assert.equal(configs.combined(other, one), both);
    assert.equal(configs.combined(both, other), both);
    assert.equal(configs.combined(one, one), one);
  });

  it('accepts 1,000 subscriptions of rooms that are also in five lists', () => {
    const configs = newConfigs();
    const types = Array.from({ length: 30 }, (_, index) => `m.room.type${index}`);
    const lists = types.slice(0, 5).map((type, index) => configs.of(requested(index, type, ...types)));
    for (let room = 0; room < 1_000; room++) {
      const inLists = lists.filter((_, index) => room & (1 << index));
      const config = inLists.reduce(
        (one, other) => configs.combined(one, other),
        configs.of(requested(50, 'm.room.name', ...types)),
      );
      assert.equal(config.timelineLimit, 50);
    }
  });

  it('rejects combinations of lists whose required state has more than 1 MiB together with M_BAD_JSON', () => {
    const configs = newConfigs();
    const state = (name: string): RequiredEntry[] => [[name.padEnd(250), name.padEnd(250)]];
    const lists = Array.from({ length: 60 }, (_, index) =>
      configs.of({ timeline_limit: 1, required_state: state(`${index}`) as [string, string][] }),
    );
    let made = 0;
    assert.throws(() => {
      for (let first = 0; first < 60; first++) {
        let config = lists[first]!;
        for (const list of lists.slice(first)) {
          config = configs.combined(config, list);
          made += config.state.text.length;
        }
      }
    }, badJson);
    assert.ok(made <= 1024 * 1024, `${made} characters`);
  });
});
