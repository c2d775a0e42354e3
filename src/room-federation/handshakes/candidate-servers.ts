import { isServerName, parseUserId, type StrippedState, serverOfUser } from '../../protocol/index.ts';
import type { RoomHead, RoomReader, UserRoom } from '../../room-engine/index.ts';
import { allowedRoomIds } from '../../room-engine/index.ts';
import type { LeaveRecipients } from './leaving/send-leave.ts';

export interface CandidateDeps {
  readonly engine: RoomReader;
  readonly serverName: string;
  /** What a user was shown of a room with an invite or a knock. */
  readonly strippedState: (roomId: string, userId: string) => Promise<readonly StrippedState[]>;
}

/** More are never asked; of those that a client names, some, so that others are asked as well. */
const [maxCandidates, maxNamed] = [30, 8];

/** Servers that have invited one user to one room and are remembered, the last ones. */
const maxEarlier = 20;

/** Servers that are told of a leave when none of those that have invited takes it. */
const maxOthers = 12;

/** Rooms whose members may join a room, of which servers are taken. */
const maxAllowRooms = 10;

/**
 * Says which servers may be in a room that this server is not in, and so help a user into it or out of it.
 * The name in a room id says nothing about that: it is a namespace.
 */
export class CandidateServers {
  readonly #deps: CandidateDeps;

  constructor(deps: CandidateDeps) {
    this.#deps = deps;
  }

  /** The servers to ask, in that order. @param via those that the client named, or that the room's alias led to */
  async of(userId: string, roomId: string, via: readonly string[] = []): Promise<string[]> {
    const { engine, serverName } = this.#deps;
    const found = new Set<string>();
    const add = (servers: Iterable<string>) => {
      for (const server of servers) {
        if (server !== serverName && isServerName(server)) found.add(server);
        if (found.size >= maxCandidates) return;
      }
    };
    add(via.slice(0, maxNamed));
    add(await this.#whoKnowsTheUser(userId, roomId));
    const head = await engine.heads.get(roomId);
    if (head) {
      add(byMembers(head));
      add(await this.#ofAllowRooms(head));
    }
    return [...found];
  }

  /**
   * Who is told that a user turns an invite down, or takes a knock back. Of several that have invited, each: the last
   * one may be a stranger to the room, while another one's invite is still in it.
   */
  async leaveRecipients(userId: string, room: UserRoom): Promise<LeaveRecipients> {
    const asked = await this.#deps.engine.events.outOfBandServers(room.roomNid, userId, maxEarlier);
    const isOther = (server: string) => server !== this.#deps.serverName && isServerName(server);
    const each = asked.map(({ server }) => server).filter(isOther);
    const all = await this.of(userId, room.roomId);
    return { each, others: all.filter((server) => !each.includes(server)).slice(0, maxOthers) };
  }

  /** The servers of who invited the user or took their knock, now and before, and those whose events described the room. */
  async #whoKnowsTheUser(userId: string, roomId: string): Promise<string[]> {
    const { engine, strippedState } = this.#deps;
    const room = (await engine.userRooms.of(userId)).get(roomId);
    if (!room) return [];
    // Who has invited last may have no business with the room; nobody can tell from outside.
    const helpers = await engine.events.outOfBandServers(room.roomNid, userId, maxEarlier);
    const earlier = helpers.map(({ server }) => server);
    if (room.membership !== 'invite' && room.membership !== 'knock') return earlier;
    const stored = await engine.events.get(room.eventNid);
    const shown = await strippedState(roomId, userId);
    return [
      ...(stored ? [serverOfUser(stored.event.sender)] : []),
      ...earlier,
      ...shown.flatMap(({ sender }) => parseUserId(sender)?.serverName ?? []),
    ];
  }

  /** Who is in a room that admits its members is likely to be in the admitting room, too. */
  async #ofAllowRooms(head: RoomHead): Promise<string[]> {
    const { engine } = this.#deps;
    const entry = head.entry('m.room.join_rules', '');
    const rules = entry && (await engine.events.get(entry.nid))?.event;
    const servers: string[] = [];
    for (const roomId of allowedRoomIds(rules).slice(0, maxAllowRooms)) {
      const allowed = await engine.heads.get(roomId);
      if (allowed) servers.push(...byMembers(allowed));
    }
    return servers;
  }
}

/** The servers of a room, those with most members first. */
function byMembers({ servers }: RoomHead): string[] {
  return [...servers].sort(([, a], [, b]) => b - a).map(([server]) => server);
}
