import assert from 'node:assert/strict';
import { it } from 'node:test';
import { manualClock } from '../../test/support/clocks/manual-clock.ts';
import { silentLogger } from '../kernel/observability/index.ts';
import { Announcements, type AnnouncementsDeps } from './announcements.ts';
import type { PresenceFact } from './presence-fact.ts';
import { offline } from './presence-status.ts';

it('Announcements tries again after the rooms of changed users could not be read, and announces newer changes together with the older changes', async () => {
  const clock = manualClock();
  const facts: PresenceFact[] = [];
  let fails = true;
  const withMembership = async () => {
    if (fails) throw new Error('no database');
    return ['!lounge'];
  };
  const announcements = new Announcements({
    engine: {
      userRooms: { withMembership },
      heads: { get: async () => ({ memberCount: () => 2 }) },
    },
    streams: { announce: (_stream: unknown, fact: PresenceFact) => facts.push(fact) },
    clock,
    log: silentLogger,
  } as unknown as AnnouncementsDeps);
  const nextTurn = () => new Promise<void>((resolve) => setImmediate(resolve));
  const online = { ...offline, presence: 'online' } as const;
  announcements.add('@anna:test', online);
  announcements.add('@ben:test', online, '!hall');
  clock.advance(500);
  await nextTurn();
  fails = false;
  announcements.add('@anna:test', offline, '!hall');
  clock.advance(5_000);
  await nextTurn();
  await announcements.close();
  assert.deepEqual(
    facts.map(({ changes, rooms }) => [[...changes].sort(), [...rooms]]),
    [
      [
        [
          ['@anna:test', offline],
          ['@ben:test', online],
        ],
        [
          ['!lounge', ['@anna:test']],
          ['!hall', ['@ben:test']],
        ],
      ],
    ],
  );
});
