import type { OpenDatabase } from '../../../test/support/databases/databases.ts';
import { RoomsUnderTest } from '../../../test/support/rooms/rooms.ts';
import { compileFilter } from '../../filters/index.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { RateLimiter } from '../../kernel/rate-limits/index.ts';
import { presenceMigrations } from '../migrations.ts';
import { Presence } from '../presence.ts';
import { PresenceEvents } from '../presence-events.ts';
import type { PresenceState } from '../presence-status.ts';

interface Options {
  readonly enabled?: boolean | 'untracked';
  readonly includeOffline?: boolean;
  readonly limit?: { per_second: number; burst_count: number };
}

const unlimited = { per_second: 1e6, burst_count: 1e6 };

/** Rooms with the presence of their users. */
export class PresenceUnderTest {
  readonly rooms: RoomsUnderTest;
  readonly presence: Presence;
  readonly events: PresenceEvents;
  /** Users whom every user ignores. */
  readonly ignored = new Set<string>();

  constructor(rooms: RoomsUnderTest, { enabled = true, includeOffline = false, limit = unlimited }: Options) {
    const { engine, database, streams, clock } = rooms;
    const limiter = new RateLimiter(limit, clock);
    this.rooms = rooms;
    this.presence = new Presence({ engine, database, streams, clock, log: silentLogger, limiter }, enabled);
    this.events = new PresenceEvents(
      {
        presence: this.presence,
        engine,
        streams,
        clock,
        ignored: { of: async () => this.ignored },
      },
      includeOffline,
    );
  }

  static async open(open: OpenDatabase, options: Options = {}): Promise<PresenceUnderTest> {
    return new PresenceUnderTest(await RoomsUnderTest.open(open, presenceMigrations), options);
  }

  async restart(open: OpenDatabase, options: Options = {}): Promise<PresenceUnderTest> {
    await this.presence.stop();
    const again = new PresenceUnderTest(await this.rooms.restart(open), options);
    await again.presence.start();
    return again;
  }

  /** Begins a sync of a user. @returns a function that ends the sync */
  sync(userId: string, presence: PresenceState = 'online'): () => void {
    return this.presence.beginSync({ userId, deviceId: 'D' }, presence);
  }

  /** Advances the clock and waits until the changes are announced. */
  async pass(milliseconds: number): Promise<void> {
    this.rooms.clock.advance(milliseconds);
    await this.presence.announcements.idle();
  }

  /** Returns the presence events of a sync: user id to presence. */
  async presenceEvents(userId: string, after: number | undefined): Promise<Record<string, unknown>> {
    const filter = compileFilter({}).presence;
    const events = await this.events.events({ userId, after, upTo: this.position, filter });
    return Object.fromEntries(
      events.map(({ sender, content }) => [sender, (content as { presence: string }).presence]),
    );
  }

  get position(): number {
    return this.rooms.streams.current;
  }
}
