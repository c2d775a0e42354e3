import assert from 'node:assert/strict';
import { type SkippableClock, skippableClock } from '../../support/clocks/skippable-clock.ts';
import type { OpenDatabase } from '../../support/databases/databases.ts';
import { ScriptedResident } from '../../support/other-servers/scripted-resident.ts';
import type { ScriptedServer } from '../../support/other-servers/scripted-server.ts';
import { type FederatedServer, SeveralServers } from '../../support/other-servers/several-servers.ts';
import { enc, type TestClient } from '../../support/users/test-client.ts';

/** A filter with `lazy_load_members`. */
export const lazy = { room: { state: { lazy_load_members: true } } };

/**
 * The server `a.test` with the user Anna, and scripted servers, each with a room that Anna can join. The scripted servers
 * serve states only at events that they have made or accepted.
 */
export class ResidentRooms {
  readonly several: SeveralServers;
  readonly a: FederatedServer;
  readonly anna: TestClient;
  readonly clock: SkippableClock;
  #count = 0;

  private constructor(parts: Pick<ResidentRooms, 'several' | 'a' | 'anna' | 'clock'>) {
    this.several = parts.several;
    this.a = parts.a;
    this.anna = parts.anna;
    this.clock = parts.clock;
  }

  static async start(kind: OpenDatabase['kind']): Promise<ResidentRooms> {
    const clock = skippableClock();
    const several = new SeveralServers(kind);
    const config = { accounts: { allow_guest_access: true } };
    const a = await several.homeserver('a.test', { clock, config });
    return new ResidentRooms({ several, a, anna: await a.registerClient('anna'), clock });
  }

  /** The number of rooms that were opened. */
  get count(): number {
    return this.#count;
  }

  /** Opens a room of a new scripted server, with the members Charlie and Derek or with its creator alone. */
  async open({ withMembers = true } = {}): Promise<ResidentRoom> {
    const server = await this.several.scripted(`far${++this.#count}.test`);
    return new ResidentRoom(server, this.anna, withMembers);
  }

  stop(): Promise<void> {
    return this.several.stop();
  }
}

/** A room of a scripted server. */
export class ResidentRoom {
  readonly server: ScriptedServer;
  readonly resident: ScriptedResident;
  readonly roomId: string;
  /** Path of the room in the client-server API. */
  readonly path: string;
  readonly charlie: string;
  readonly derek: string;
  readonly #anna: TestClient;

  constructor(server: ScriptedServer, anna: TestClient, withMembers: boolean) {
    this.server = server;
    this.#anna = anna;
    this.resident = new ScriptedResident(server, 'a.test');
    this.roomId = this.resident.room.roomId;
    this.path = `/rooms/${enc(this.roomId)}`;
    this.charlie = `@charlie:${server.name}`;
    this.derek = `@derek:${server.name}`;
    for (const userId of withMembers ? [this.charlie, this.derek] : []) {
      this.resident.setState('m.room.member', { membership: 'join' }, userId, userId);
    }
  }

  readonly join = async (user = this.#anna): Promise<void> => {
    const via = this.server.name;
    const { status, raw } = await user.call('POST', `/join/${enc(this.roomId)}`, {}, { via });
    assert.equal(status, 200, raw);
  };

  /** Returns the joined members, sorted. */
  readonly members = async (): Promise<string[]> => {
    const { joined } = await this.#anna.do('GET', `${this.path}/joined_members`);
    return Object.keys(joined as object).sort();
  };

  /** Returns the bodies of the 50 newest messages. */
  readonly messages = async (): Promise<string[]> => {
    const { chunk } = await this.#anna.do('GET', `${this.path}/messages?dir=b&limit=50`);
    return (chunk as { content: { body?: string } }[]).flatMap(({ content }) => content.body ?? []);
  };
}

/** The entry of a room in a sync. */
export interface RoomEntry {
  readonly state?: { readonly events?: readonly { type: string; state_key?: string }[] };
  readonly timeline: { readonly events: readonly { type: string; state_key?: string; content: object }[] };
}

/** Returns the bodies of the messages in the timeline of a room. */
export const bodies = (entry: RoomEntry | undefined): string[] =>
  (entry?.timeline.events ?? []).flatMap(({ content }) => ('body' in content ? String(content.body) : []));

/** Returns the users whose memberships are in the state or the timeline of a room, sorted. */
export const membersIn = (entry: RoomEntry | undefined): string[] =>
  [
    ...new Set(
      [...(entry?.state?.events ?? []), ...(entry?.timeline.events ?? [])]
        .filter(({ type }) => type === 'm.room.member')
        .map(({ state_key: key = '' }) => key),
    ),
  ].sort();
