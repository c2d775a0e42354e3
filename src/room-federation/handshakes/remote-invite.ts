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
  PrejoinStateKeys,
  RoomHead,
  StoredEvent,
  VerifiedEvent,
} from '../../room-engine/index.ts';
import { withSignaturesFrom } from './added-signatures.ts';
import { type HandshakeDeps, HandshakeFailure } from './handshake.ts';
import { prejoinPdus } from './prejoin-state.ts';
import { buildFromTemplate, graphReferences } from './templates/event-from-template.ts';
import { handshakeErrorForClient, isServerFailure } from './try-servers.ts';

export interface RemoteInviteDeps extends HandshakeDeps {
  readonly placement: Placement;
  /** The keys of the state events that describe the room to the remote server. */
  readonly prejoinStateKeys: PrejoinStateKeys;
}

/** Timeout of the request with the invite in milliseconds: a client waits for the response. */
const requestTimeout = 30_000;

/**
 * Invites users of remote servers. Their server signs the invite before it is placed in the room.
 * Source: server-server API, "Inviting to a room".
 */
export class RemoteInvite {
  readonly #deps: RemoteInviteDeps;

  constructor(deps: RemoteInviteDeps) {
    this.#deps = deps;
  }

  /**
   * Sends the invite to the server of the invited user, and places it in the room with the signature of that server.
   * @param draft the invite
   * @throws MatrixError M_FORBIDDEN when the room does not allow the invite or does not federate, or the remote server
   * rejects the invite; M_UNKNOWN with 502 when that server is unreachable or its response is invalid; and the errors
   * of the checks of modules and of the room's policy server
   */
  async invite(head: RoomHead, draft: EventToSend & { readonly stateKey: string }): Promise<StoredEvent> {
    const { placement, engine, peers, prejoinStateKeys } = this.#deps;
    const { roomId, version } = head;
    const server = serverOfUser(draft.stateKey);
    await this.#checkFederated(head);
    const template = await placement.eventTemplate(roomId, draft);
    const checked = engine.checks.isEmpty ? draft : await engine.checks.pass(draft, { roomId });
    const built = buildFromTemplate(
      graphReferences(template.event, version),
      { ...draft, content: checked.content, roomId },
      version,
      this.#deps,
    );
    // The remote server must not receive content that the room's policy server refuses.
    const sent = await engine.policies.sign(head, built);
    const { eventId, pdu } = sent.event;
    const inviteRoomState = await prejoinPdus(engine, head, prejoinStateKeys, draft.sender);
    try {
      const returned = await peers.invite(
        server,
        { roomId, eventId, event: pdu, roomVersion: version.id, inviteRoomState },
        { ignoreBackoff: true, timeout: requestTimeout },
      );
      const signed = withSignaturesFrom(server, sent, returned);
      if (!signed)
        throw new HandshakeFailure(
          server,
          'the invite was not returned unchanged with the signature of the server',
        );
      const event = await this.#verified(server, signed, version);
      return await placement.place(roomId, event, { refuse: true });
    } catch (error) {
      throw isServerFailure(error) ? handshakeErrorForClient(error) : error;
    }
  }

  /**
   * Checks that the room federates: the authorization rules apply `m.federate` to joins but not to invites.
   * Source: client-server API, `m.room.create`, "m.federate".
   */
  async #checkFederated(head: RoomHead): Promise<void> {
    const entry = head.entry('m.room.create', '');
    const create = entry && (await this.#deps.engine.events.get(entry.nid));
    if (create?.event.content['m.federate'] === false) {
      throw forbidden('This room does not federate: users of other servers cannot join it');
    }
  }

  async #verified(server: string, signed: JsonObject, version: RoomVersion): Promise<VerifiedEvent> {
    const { keys, clock } = this.#deps;
    const received = receivePdu(signed, version);
    const { event, json } = received;
    const ofServer = (event.pdu['signatures'] as JsonObject)[server] as JsonObject;
    const wantedKeys = Object.keys(ofServer)
      .filter((keyId) => keyId !== policyKeyId)
      .map((keyId) => ({ serverName: server, keyId, validUntil: event.originServerTs }));
    const keyOf = await keys.findAll(wantedKeys);
    if (!isSignedByServer(event, received.signingInput, server, keyOf, clock.now())) {
      throw new HandshakeFailure(server, 'the signature on the invite is invalid');
    }
    return { event, json };
  }
}
