import type { EventSigner } from '../../protocol/index.ts';
import { roomVersions } from '../../protocol/index.ts';
import type { RoomWriter } from '../../room-engine/index.ts';
import type { Incoming } from '../incoming.ts';
import type { EventKeys } from '../remote-servers.ts';
import type { MembershipPeers } from './peers.ts';
import type { EventBuildDeps } from './templates/event-from-template.ts';

/** What every handshake with another server needs. */
export interface HandshakeDeps extends EventBuildDeps {
  readonly engine: RoomWriter;
  readonly incoming: Pick<Incoming, 'verify' | 'process'>;
  readonly peers: MembershipPeers;
  readonly keys: EventKeys;
  readonly signer: EventSigner;
}

/** The versions of rooms that users of this server can be in. */
export const supportedVersions: readonly string[] = [...roomVersions.keys()];
