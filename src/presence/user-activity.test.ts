import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UserActivity } from './user-activity.ts';

const minute = 60_000;
const start = 1_000_000_000;

/** Returns the presence of `activity` at each of the times. */
function states(activity: UserActivity, ...times: number[]): string[] {
  return times.map((time) => {
    const { presence, currentlyActive } = activity.at(start + time);
    return currentlyActive ? `${presence}, active` : presence;
  });
}

test('a syncing device is online, stops being active after one minute, and is unavailable after five', () => {
  const activity = new UserActivity();
  activity.set('A', 'online', start);
  activity.beginSync('A', start);
  assert.deepEqual(states(activity, 0, minute - 1, minute, 5 * minute - 1, 5 * minute, 60 * minute), [
    'online, active',
    'online, active',
    'online',
    'online',
    'unavailable',
    'unavailable',
  ]);
  assert.equal(activity.nextChange(start), start + minute);
  assert.equal(activity.nextChange(start + minute), start + 5 * minute);
  assert.equal(activity.nextChange(start + 5 * minute), undefined);
});

test('a device is offline 30 seconds after its last sync has ended', () => {
  const activity = new UserActivity();
  activity.set('A', 'online', start);
  const end = activity.beginSync('A', start);
  assert.deepEqual(states(activity, 45_000), ['online, active']);
  end(start + 50_000);
  assert.equal(activity.nextChange(start + 60_000), start + 80_000);
  assert.deepEqual(states(activity, 79_999, 80_000), ['online', 'offline']);
  assert.equal(activity.at(start + 80_000).lastActive, start);
});

test('a user has the highest presence of their devices', () => {
  const activity = new UserActivity();
  for (const [device, presence] of [
    ['A', 'unavailable'],
    ['B', 'online'],
  ] as const) {
    activity.set(device, presence, start);
  }
  activity.beginSync('A', start);
  assert.deepEqual(states(activity, 0, 30_000), ['online, active', 'unavailable']);
  assert.equal(activity.presenceOf('B'), undefined);
});

test('an activity makes an unavailable user online, but not a user who has set the presence to offline', () => {
  const activity = new UserActivity();
  activity.set('A', 'unavailable', start);
  activity.beginSync('A', start);
  assert.deepEqual(states(activity, 10), ['unavailable']);
  activity.recordActivity(start + 20);
  assert.deepEqual(states(activity, 20), ['online, active']);
  activity.set('A', 'offline', start + 30);
  activity.recordActivity(start + 40);
  assert.deepEqual(states(activity, 40), ['offline'], 'as the client requested');
});

test('UserActivity distinguishes a bounded number of devices of a user', () => {
  const activity = new UserActivity();
  for (let device = 0; device < 200; device++) activity.set(`${device}`, 'online', start + device);
  assert.equal(activity.presenceOf('0'), undefined);
  assert.equal(activity.presenceOf('199'), 'online');
});
