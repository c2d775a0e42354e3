import type { Clock } from '../../kernel/clock.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import {
  type Presence,
  type PresenceFact,
  type PresenceStatus,
  statusContent,
} from '../../presence/index.ts';
import { type JsonObject, serverOfUser } from '../../protocol/index.ts';
import type { RoomFact, RoomReader } from '../../room-engine/index.ts';
import type { FederationSender } from '../sender/federation-sender.ts';

export interface PresenceEduSenderDeps {
  readonly serverName: string;
  readonly engine: Pick<RoomReader, 'heads' | 'stream'>;
  readonly presence: Pick<Presence, 'presenceStream' | 'usersNotOffline' | 'peek'>;
  readonly sender: Pick<FederationSender, 'sendEdu'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Lifetime of an EDU in milliseconds. */
const lifetime = 5 * 60_000;

/** Maximum number of users in one EDU. */
const maxInEdu = 50;

/**
 * A server that joins a room with more members than this does not receive the presence of the local members when it
 * joins.
 */
const maxMembers = 1_000;

/** Sends presence of local users to the servers that share rooms with them. Source: server-server API, "Presence". */
export class PresenceEduSender {
  readonly #deps: PresenceEduSenderDeps;

  constructor(deps: PresenceEduSenderDeps) {
    this.#deps = deps;
    deps.presence.presenceStream.subscribe((fact) => void this.#attempt(() => this.#changed(fact)));
    deps.engine.stream.subscribe((fact) => this.#roomFact(fact));
  }

  async #attempt(send: () => Promise<void>): Promise<void> {
    try {
      await send();
    } catch (error) {
      this.#deps.log.error({ err: error }, 'Presence could not be sent to other servers');
    }
  }

  async #changed({ changes, rooms, routed = new Map() }: PresenceFact): Promise<void> {
    const { serverName, engine } = this.#deps;
    const destinations = new Map<string, Set<string>>();
    for (const [roomId, users] of rooms) {
      const local = users.filter((userId) => serverOfUser(userId) === serverName);
      const head = local.length > 0 ? await engine.heads.get(roomId) : undefined;
      for (const userId of local) {
        const servers = destinations.get(userId) ?? new Set();
        for (const server of head?.servers.keys() ?? []) servers.add(server);
        destinations.set(userId, servers);
      }
    }
    for (const [receiver, users] of routed) {
      for (const userId of users) {
        if (serverOfUser(userId) !== serverName) continue;
        const servers = destinations.get(userId) ?? new Set();
        destinations.set(userId, servers.add(serverOfUser(receiver)));
      }
    }
    for (const [userId, servers] of destinations) {
      const status = changes.get(userId);
      if (status) this.#send(userId, status, servers);
    }
  }

  #roomFact({ roomId, membershipChanges }: RoomFact): void {
    for (const { userId, from, to } of membershipChanges) {
      const server = serverOfUser(userId);
      if (to !== 'join' || from === 'join' || server === this.#deps.serverName) continue;
      void this.#attempt(() => this.#sendPresentUsers(roomId, server));
    }
  }

  /** Sends the presence of a room's local members to a server whose only user in the room has just joined. */
  async #sendPresentUsers(roomId: string, server: string): Promise<void> {
    const { engine, presence, serverName } = this.#deps;
    const head = await engine.heads.get(roomId);
    if (head?.servers.get(server) !== 1 || head.memberCount('join') > maxMembers) return;
    for (const [userId, membership] of head.members) {
      if (membership !== 'join' || serverOfUser(userId) !== serverName) continue;
      const status = presence.usersNotOffline.has(userId) ? presence.peek(userId) : undefined;
      if (status && status.presence !== 'offline') this.#send(userId, status, [server]);
    }
  }

  #send(userId: string, status: PresenceStatus, servers: Iterable<string>): void {
    const { sender, clock } = this.#deps;
    // `last_active_ago` is required, so a user whose last activity is unknown counts as active at this moment.
    const update = { user_id: userId, last_active_ago: 0, ...statusContent(status, clock.now()) };
    const content = { push: [update] };
    sender.sendEdu(servers, { type: 'm.presence', key: userId, lifetime, content, combine }, { lazy: true });
  }
}

function combine(contents: readonly JsonObject[]): JsonObject[] {
  const updates = contents.flatMap(({ push }) => push as readonly JsonObject[]);
  const combined: JsonObject[] = [];
  for (let start = 0; start < updates.length; start += maxInEdu) {
    combined.push({ push: updates.slice(start, start + maxInEdu) });
  }
  return combined;
}
