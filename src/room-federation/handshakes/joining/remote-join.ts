import { TimeSlices } from '../../../kernel/time-slices.ts';
import type { JsonObject, RoomVersion } from '../../../protocol/index.ts';
import type { Placement, StoredEvent } from '../../../room-engine/index.ts';
import { isResident } from '../../../room-engine/index.ts';
import { type HandshakeDeps, HandshakeFailure, supportedVersions } from '../handshake.ts';
import { buildFromTemplate } from '../templates/event-from-template.ts';
import { checkTemplate } from '../templates/template-check.ts';
import { tryServers } from '../try-servers.ts';
import type { StoredIds } from './complete-auth-events.ts';
import { checkSendJoinResponse, countersignedJoin } from './send-join-response.ts';

/** A membership that a local user requests through resident servers. */
export interface HandshakeRequest {
  readonly userId: string;
  readonly roomId: string;
  /** The servers that receive the requests, best first. */
  readonly servers: readonly string[];
  /** The content of the membership event. */
  readonly content: JsonObject;
}

export interface JoinRequest extends HandshakeRequest {
  /** Requests the room without its members, which are fetched later (`omit_members`). */
  readonly omitMembers: boolean;
}

export interface RemoteJoinDeps extends HandshakeDeps {
  readonly placement: Placement;
}

/**
 * Joins rooms through a resident server.
 * Source: server-server API, "Joining Rooms".
 */
export class RemoteJoin {
  readonly #deps: RemoteJoinDeps;

  constructor(deps: RemoteJoinDeps) {
    this.#deps = deps;
  }

  /**
   * Joins the room through the first server that accepts the join.
   * @throws MatrixError the most informative error of all servers
   */
  join(request: JoinRequest): Promise<StoredEvent> {
    return tryServers(request.servers, this.#deps.clock, (server, ignoreBackoff) =>
      this.#joinThrough(server, request, ignoreBackoff),
    );
  }

  async #joinThrough(server: string, request: JoinRequest, ignoreBackoff: boolean): Promise<StoredEvent> {
    const { peers, engine, incoming, placement, signer, clock } = this.#deps;
    const { userId, roomId, content, omitMembers } = request;
    const head = await engine.heads.get(roomId);
    const prepared = await peers.fetchEventTemplate(server, 'join', request, supportedVersions, {
      ignoreBackoff,
    });
    const template = checkTemplate(prepared, { server, roomId, userId, membership: 'join' });
    const { version, authoriser } = template;
    if (head?.isEntered && head.version !== version) {
      throw new HandshakeFailure(server, 'the event template has another room version');
    }
    const builtJoin = buildFromTemplate(
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
    const { eventId, pdu } = builtJoin.event;
    const sent = { roomId, eventId, event: pdu };
    const answer = await peers.sendJoin(server, sent, omitMembers, { ignoreBackoff });
    const expected = { server, roomId, version, sentJoin: builtJoin, isAuthorised: authoriser !== undefined };
    // This server is in the room already: only the authorisation by a resident user was missing.
    if (isResident(head, signer.serverName) && head.servers.size > 0) {
      const join = await countersignedJoin(incoming, answer, expected);
      return incoming.process(roomId, server, join).catch((cause: unknown) => {
        throw new HandshakeFailure(server, 'the join could not be placed in the room', { cause });
      });
    }
    const slices = new TimeSlices(clock);
    const entry = await checkSendJoinResponse(incoming, answer, {
      ...expected,
      stored: this.#storedIdsOf(version),
      slices,
    });
    return placement.enter({ roomId, version }, entry);
  }

  /** Looks up stored events. Ignores events that an attempt to join with another room version has stored. */
  #storedIdsOf(version: RoomVersion): StoredIds {
    return async (eventIds) => {
      const storedById = await this.#deps.placement.find(eventIds);
      return new Set(eventIds.filter((eventId) => storedById.get(eventId)?.event.version === version));
    };
  }
}
