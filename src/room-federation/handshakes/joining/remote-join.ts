import { TimeSlices } from '../../../kernel/time-slices.ts';
import type { JsonObject, RoomVersion } from '../../../protocol/index.ts';
import type { Placement, StoredEvent } from '../../../room-engine/index.ts';
import { isResident } from '../../../room-engine/index.ts';
import { type HandshakeDeps, supportedVersions } from '../handshake.ts';
import { HandshakeFailure } from '../handshake-failure.ts';
import { buildFromTemplate } from '../templates/event-from-template.ts';
import { checkTemplate } from '../templates/template-check.ts';
import { tryServers } from '../try-servers.ts';
import type { StoredIds } from './complete-auth-events.ts';
import { checkSendJoinResponse, countersignedJoin } from './send-join-response.ts';

/** Who wants to get where. */
export interface HandshakeRequest {
  readonly userId: string;
  readonly roomId: string;
  /** The servers to ask, in that order. */
  readonly servers: readonly string[];
  /** The content of the membership event. */
  readonly content: JsonObject;
}

export interface JoinRequest extends HandshakeRequest {
  /** Asks for the room without its members; they follow later. */
  readonly omitMembers: boolean;
}

export interface RemoteJoinDeps extends HandshakeDeps {
  readonly placement: Placement;
}

/**
 * Gets users into rooms with the help of a server that is in them.
 * Source: server-server API, "Joining Rooms".
 */
export class RemoteJoin {
  readonly #deps: RemoteJoinDeps;

  constructor(deps: RemoteJoinDeps) {
    this.#deps = deps;
  }

  /** @throws MatrixError that says best why no server has let the user in */
  join(place: JoinRequest): Promise<StoredEvent> {
    return tryServers(place.servers, this.#deps.clock, (server, ignoreBackoff) =>
      this.#through(server, place, ignoreBackoff),
    );
  }

  async #through(server: string, place: JoinRequest, ignoreBackoff: boolean): Promise<StoredEvent> {
    const { peers, engine, incoming, placement, signer, clock } = this.#deps;
    const { userId, roomId, content, omitMembers } = place;
    const head = await engine.heads.get(roomId);
    const prepared = await peers.fetchEventTemplate(server, 'join', place, supportedVersions, {
      ignoreBackoff,
    });
    const template = checkTemplate(prepared, { server, roomId, userId, membership: 'join' });
    const { version, authoriser } = template;
    if (head?.isEntered && head.version !== version) {
      throw new HandshakeFailure(server, 'the room has another version');
    }
    const own = buildFromTemplate(
      template.references,
      {
        roomId,
        type: 'm.room.member',
        sender: userId,
        stateKey: userId,
        content: {
          ...content,
          membership: 'join',
          ...(authoriser !== undefined && { join_authorised_via_users_server: authoriser }),
        },
      },
      version,
      this.#deps,
    );
    const { eventId, pdu } = own.event;
    const sent = { roomId, eventId, event: pdu };
    const answer = await peers.sendJoin(server, sent, omitMembers, { ignoreBackoff });
    const expected = { server, roomId, version, own, isAuthorised: authoriser !== undefined };
    // Already in the room: it was only somebody's permission that was missing here.
    if (isResident(head, signer.serverName) && head.servers.size > 0) {
      const join = await countersignedJoin(incoming, answer, expected);
      return incoming.process(roomId, server, join).catch((cause: unknown) => {
        throw new HandshakeFailure(server, 'the join has no place in the room', { cause });
      });
    }
    const slices = new TimeSlices(clock);
    const entry = await checkSendJoinResponse(incoming, answer, {
      ...expected,
      stored: this.#storedOf(version),
      slices,
    });
    return placement.enter({ roomId, version }, entry);
  }

  /** What an attempt to join by another version has left does not count. */
  #storedOf(version: RoomVersion): StoredIds {
    return async (eventIds) => {
      const found = await this.#deps.placement.find(eventIds);
      return new Set(eventIds.filter((eventId) => found.get(eventId)?.event.version === version));
    };
  }
}
