import {
  forbidden,
  isSignedByServer,
  type JsonObject,
  policyKeyId,
  type RoomVersion,
  receivePdu,
  serverOfUser,
} from '../../protocol/index.ts';
import type {
  EventToSend,
  Placement,
  PrejoinKeys,
  RoomHead,
  StoredEvent,
  VerifiedEvent,
} from '../../room-engine/index.ts';
import { withSignaturesFrom } from './added-signatures.ts';
import type { HandshakeDeps } from './handshake.ts';
import { HandshakeFailure } from './handshake-failure.ts';
import { prejoinPdus } from './prejoin-state.ts';
import { buildFromTemplate, graphReferences } from './templates/event-from-template.ts';
import { handshakeErrorForClient, isServerFailure } from './try-servers.ts';

export interface RemoteInviteDeps extends HandshakeDeps {
  readonly placement: Placement;
  /** What of the room the other server is shown. */
  readonly prejoinKeys: PrejoinKeys;
}

/** Milliseconds for the other server to answer: a client waits. */
const requestTimeout = 30_000;

/**
 * Invites users of other servers. Their server signs the invite before it goes into the room.
 * Source: server-server API, "Inviting to a room".
 */
export class RemoteInvite {
  readonly #deps: RemoteInviteDeps;

  constructor(deps: RemoteInviteDeps) {
    this.#deps = deps;
  }

  /**
   * @param draft the invite
   * @throws MatrixError M_FORBIDDEN when it is not allowed in the room, that is for this server only, or the other
   * server does not want it;
   * M_UNKNOWN with 502 when that server can not be asked
   */
  async invite(head: RoomHead, draft: EventToSend & { readonly stateKey: string }): Promise<StoredEvent> {
    const { placement, engine, peers, prejoinKeys } = this.#deps;
    const { roomId, version } = head;
    const server = serverOfUser(draft.stateKey);
    await this.#checkFederated(head);
    const template = await placement.eventTemplate(roomId, draft);
    if (!engine.checks.isEmpty) await engine.checks.pass(draft, { roomId });
    const built = buildFromTemplate(
      graphReferences(template.event, version),
      { ...draft, roomId },
      version,
      this.#deps,
    );
    // The invited user is to see nothing that the room's policy server does not want.
    const own = await engine.policies.sign(head, built);
    const { eventId, pdu } = own.event;
    const inviteRoomState = await prejoinPdus(engine, head, prejoinKeys, draft.sender);
    try {
      const returned = await peers.invite(
        server,
        { roomId, eventId, event: pdu, roomVersion: version.id, inviteRoomState },
        { ignoreBackoff: true, timeout: requestTimeout },
      );
      const signed = withSignaturesFrom(server, own, returned);
      if (!signed) throw new HandshakeFailure(server, 'it is not our invite, signed');
      const event = await this.#verified(server, signed, version);
      return await placement.place(roomId, event, { refuse: true });
    } catch (error) {
      throw isServerFailure(error) ? handshakeErrorForClient(error) : error;
    }
  }

  /**
   * The rules of authorization let users of other servers be invited whom they do not let join.
   * Source: client-server API, `m.room.create`, "m.federate".
   */
  async #checkFederated(head: RoomHead): Promise<void> {
    const entry = head.entry('m.room.create', '');
    const create = entry && (await this.#deps.engine.events.get(entry.nid));
    if (create?.event.content['m.federate'] === false) {
      throw forbidden('This room is for users of this server only');
    }
  }

  async #verified(server: string, signed: JsonObject, version: RoomVersion): Promise<VerifiedEvent> {
    const { keys, clock } = this.#deps;
    const received = receivePdu(signed, version);
    const { event, json } = received;
    const ofServer = (event.pdu['signatures'] as JsonObject)[server] as JsonObject;
    const wants = Object.keys(ofServer)
      .filter((keyId) => keyId !== policyKeyId)
      .map((keyId) => ({ serverName: server, keyId, validUntil: event.originServerTs }));
    const keyOf = await keys.findAll(wants);
    if (!isSignedByServer(event, received.signingInput, server, keyOf, clock.now())) {
      throw new HandshakeFailure(server, 'its signature is not right');
    }
    return { event, json };
  }
}
