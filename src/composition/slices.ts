import { accountDataManifest } from '../account-data/index.ts';
import { accountsManifest } from '../accounts/index.ts';
import { delayedEventsManifest } from '../delayed-events/index.ts';
import { devicesManifest } from '../devices/index.ts';
import { directoryManifest } from '../directory/index.ts';
import { e2eeManifest } from '../e2ee/index.ts';
import { federationManifest } from '../federation/index.ts';
import { federationClientManifest } from '../federation-client/index.ts';
import { filtersManifest } from '../filters/index.ts';
import { databaseMigrations } from '../kernel/database/index.ts';
import { jobMigrations } from '../kernel/jobs/index.ts';
import { migrationsOf, type SliceManifest } from '../kernel/slices/index.ts';
import { streamMigrations } from '../kernel/streams/index.ts';
import { mediaManifest } from '../media/index.ts';
import { openIdManifest } from '../openid/index.ts';
import { presenceManifest } from '../presence/index.ts';
import { profilesManifest } from '../profiles/index.ts';
import { pushManifest } from '../push/index.ts';
import { receiptsManifest } from '../receipts/index.ts';
import { relationsManifest } from '../relations/index.ts';
import { reportsManifest } from '../reports/index.ts';
import { roomEngineManifest } from '../room-engine/index.ts';
import { roomFederationManifest } from '../room-federation/index.ts';
import { searchManifest } from '../search/index.ts';
import { serverNoticesManifest } from '../server-notices/index.ts';
import { syncManifest } from '../sync/index.ts';
import { threadSubscriptionsManifest } from '../thread-subscriptions/index.ts';
import { toDeviceManifest } from '../to-device/index.ts';

/** The only list of all slices with tables. Their migrations are applied in this order. */
export const slices: readonly SliceManifest[] = [
  devicesManifest,
  accountsManifest,
  profilesManifest,
  accountDataManifest,
  filtersManifest,
  federationClientManifest,
  mediaManifest,
  roomEngineManifest,
  roomFederationManifest,
  relationsManifest,
  reportsManifest,
  serverNoticesManifest,
  openIdManifest,
  searchManifest,
  delayedEventsManifest,
  receiptsManifest,
  directoryManifest,
  presenceManifest,
  pushManifest,
  toDeviceManifest,
  threadSubscriptionsManifest,
  e2eeManifest,
  syncManifest,
  federationManifest,
];

/** Schema migrations of the kernel and of all slices, in the order in which they are applied. */
export const migrations = [
  ...databaseMigrations,
  ...streamMigrations,
  ...jobMigrations,
  ...migrationsOf(slices),
];
