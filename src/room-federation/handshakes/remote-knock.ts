import type { Placement, StoredEvent } from '../../room-engine/index.ts';
import { type HandshakeDeps, HandshakeFailure, supportedVersions } from './handshake.ts';
import type { HandshakeRequest } from './joining/remote-join.ts';
import { readPrejoinState } from './prejoin-state.ts';
import { buildFromTemplate } from './templates/event-from-template.ts';
import { checkTemplate } from './templates/template-check.ts';
import { tryServers } from './try-servers.ts';

/**
 * Knocks on rooms that this server is not in.
 * Source: server-server API, "Knocking upon a room".
 */
export class RemoteKnock {
  readonly #deps: HandshakeDeps & { readonly placement: Placement };

  constructor(deps: HandshakeDeps & { readonly placement: Placement }) {
    this.#deps = deps;
  }

  /**
   * Knocks on the room through the first server that accepts the knock.
   * @throws MatrixError the most informative error of all servers
   */
  knock(request: HandshakeRequest): Promise<StoredEvent> {
    return tryServers(request.servers, this.#deps.clock, (server, ignoreBackoff) =>
      this.#knockAt(server, request, ignoreBackoff),
    );
  }

  async #knockAt(server: string, request: HandshakeRequest, ignoreBackoff: boolean): Promise<StoredEvent> {
    const { peers, incoming, placement, engine } = this.#deps;
    const { roomId, userId, content } = request;
    const head = await engine.heads.get(roomId);
    const prepared = await peers.fetchEventTemplate(server, 'knock', request, supportedVersions, {
      ignoreBackoff,
    });
    const { version, references } = checkTemplate(prepared, {
      server,
      roomId,
      userId,
      membership: 'knock',
    });
    if (head?.isEntered && head.version !== version) {
      throw new HandshakeFailure(server, 'the event template has another room version');
    }
    const memberEvent = { roomId, type: 'm.room.member', sender: userId, stateKey: userId };
    const built = buildFromTemplate(
      references,
      { ...memberEvent, content: { ...content, membership: 'knock' } },
      version,
      this.#deps,
    );
    const { eventId, pdu } = built.event;
    const roomState = await peers.sendKnock(server, { roomId, eventId, event: pdu }, { ignoreBackoff });
    const { state } = await readPrejoinState(incoming, { roomId, version }, roomState);
    return placement.addOutOfBand({ roomId, version }, built, { state, server });
  }
}
