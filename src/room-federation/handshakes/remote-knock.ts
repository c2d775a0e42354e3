import type { Placement, StoredEvent } from '../../room-engine/index.ts';
import { type HandshakeDeps, supportedVersions } from './handshake.ts';
import { HandshakeFailure } from './handshake-failure.ts';
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

  /** @throws MatrixError that says best why no server has taken the knock */
  knock(place: HandshakeRequest): Promise<StoredEvent> {
    return tryServers(place.servers, this.#deps.clock, (server, ignoreBackoff) =>
      this.#at(server, place, ignoreBackoff),
    );
  }

  async #at(server: string, wanted: HandshakeRequest, ignoreBackoff: boolean): Promise<StoredEvent> {
    const { peers, incoming, placement, engine } = this.#deps;
    const { roomId, userId, content } = wanted;
    const head = await engine.heads.get(roomId);
    const prepared = await peers.fetchEventTemplate(server, 'knock', wanted, supportedVersions, {
      ignoreBackoff,
    });
    const { version, references: place } = checkTemplate(prepared, {
      server,
      roomId,
      userId,
      membership: 'knock',
    });
    if (head?.isEntered && head.version !== version) {
      throw new HandshakeFailure(server, 'the room has another version');
    }
    const own = { roomId, type: 'm.room.member', sender: userId, stateKey: userId };
    const built = buildFromTemplate(
      place,
      { ...own, content: { ...content, membership: 'knock' } },
      version,
      this.#deps,
    );
    const { eventId, pdu } = built.event;
    const shown = await peers.sendKnock(server, { roomId, eventId, event: pdu }, { ignoreBackoff });
    const { state } = await readPrejoinState(incoming, { roomId, version }, shown);
    return placement.addOutOfBand({ roomId, version }, built, { state, server });
  }
}
