import type { Devices } from '../devices/index.ts';
import type { CacheRegistry } from '../kernel/caches/index.ts';
import type { Clock } from '../kernel/clock.ts';
import type { Database } from '../kernel/database/index.ts';
import type { Jobs } from '../kernel/jobs/index.ts';
import type { Logger } from '../kernel/observability/index.ts';
import { jsonFacts, Sequence, Stream, type StreamWriter } from '../kernel/streams/index.ts';
import type { RoomReader } from '../room-engine/index.ts';
import type { MessageQueues } from '../to-device/index.ts';
import { KeyBackups } from './backup/key-backups.ts';
import { backupRoutes } from './backup/routes.ts';
import { CrossSigning, type Reauthenticator } from './cross-signing/cross-signing.ts';
import { crossSigningRoutes } from './cross-signing/routes.ts';
import { SignatureUpload } from './cross-signing/signature-upload.ts';
import { DehydratedDevices } from './dehydrated/dehydrated-devices.ts';
import { dehydratedDeviceRoutes } from './dehydrated/routes.ts';
import type { DeviceKeyChanges } from './device-key-changes.ts';
import { DeviceLists, type SignatureChange } from './device-lists/device-lists.ts';
import { deviceListRoutes } from './device-lists/routes.ts';
import { deviceListSyncSource } from './device-lists/sync-source.ts';
import { KeyClaiming } from './keys/key-claiming.ts';
import { KeyCounts } from './keys/key-counts.ts';
import { KeyQuery } from './keys/key-query.ts';
import { KeyUpload } from './keys/key-upload.ts';
import { LocalKeyClaims } from './keys/local-key-claims.ts';
import { keyRoutes } from './keys/routes.ts';
import { keyCountSyncSource } from './keys/sync-source.ts';
import type { RemoteKeys } from './remote-keys/remote-keys.ts';
import { RemoteDeviceLists } from './remote-lists/remote-device-lists.ts';

export interface E2eeDeps {
  readonly database: Database;
  readonly streams: StreamWriter;
  readonly caches: CacheRegistry;
  readonly devices: Devices;
  readonly engine: RoomReader;
  readonly keyChanges: DeviceKeyChanges;
  readonly queues: MessageQueues;
  readonly serverName: string;
  readonly reauthenticator: Reauthenticator;
  readonly clock: Clock;
  readonly log: Logger;
  /**
   * Sends requests to other servers; when absent, the responses about keys of remote users have a failure for each
   * server.
   */
  readonly remote?: RemoteKeys | undefined;
  /** When absent, device lists of remote users are not stored. */
  readonly jobs?: Jobs | undefined;
}

export type E2ee = Awaited<ReturnType<typeof openE2ee>>;

/** Opens the services of end-to-end encryption. */
export async function openE2ee(deps: E2eeDeps) {
  const { database, streams, keyChanges, remote, jobs } = deps;
  const { keyStream } = keyChanges;
  const reading = openE2eeReading(deps);
  const { signatureStream } = reading;
  const keyIds = await Sequence.open(database, 'one_time_keys');
  const lists = remote && jobs && new RemoteDeviceLists({ ...deps, remote, jobs });
  await lists?.start();
  const query = new KeyQuery({ ...deps, remote, lists });
  const upload = new KeyUpload({ ...deps, keyStream, keyIds });
  const services = {
    ...reading,
    upload,
    query,
    backups: new KeyBackups(database),
    dehydrated: new DehydratedDevices({ ...deps, upload }),
    crossSigning: new CrossSigning({ ...deps, signatureStream }),
    signatures: new SignatureUpload({ ...deps, query, signatureStream }),
    claiming: new KeyClaiming({ ...deps, remote, claims: new LocalKeyClaims(database, streams, keyStream) }),
    /** Absent when device lists of remote users are not stored. */
    remoteLists: lists,
  };
  const routes = [
    ...keyRoutes({ ...services, clock: deps.clock }),
    ...deviceListRoutes(services.deviceLists),
    ...crossSigningRoutes(services.crossSigning, services.signatures),
    ...backupRoutes(services.backups),
    ...dehydratedDeviceRoutes(services.dehydrated),
  ];
  return { ...services, routes };
}

/**
 * Opens the services that syncs use: device lists and the counts of one-time keys. They follow the streams,
 * so that they also work in a process that does not write.
 */
export function openE2eeReading(
  deps: Pick<E2eeDeps, 'database' | 'streams' | 'caches' | 'devices' | 'engine' | 'keyChanges' | 'log'>,
) {
  const { keyStream } = deps.keyChanges;
  const signatureStream = new Stream<SignatureChange>('user_signatures', jsonFacts());
  const deviceLists = new DeviceLists({ ...deps, signatureStream });
  const counts = new KeyCounts(deps.database, deps.caches, keyStream);
  return {
    syncSources: [
      deviceListSyncSource({ ...deps, deviceLists, signatureStream }),
      keyCountSyncSource(counts, keyStream),
    ],
    signatureStream,
    streams: [signatureStream],
    deviceLists,
    counts,
  };
}
