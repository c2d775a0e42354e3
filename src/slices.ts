import { accountDataManifest } from './account-data/manifest.ts';
import { accountsManifest } from './accounts/manifest.ts';
import { activeUsersManifest } from './active-users/manifest.ts';
import { adminManifest } from './admin/manifest.ts';
import { appservicesManifest } from './appservices/manifest.ts';
import { consoleManifest } from './console/manifest.ts';
import { delayedEventsManifest } from './delayed-events/manifest.ts';
import { devicesManifest } from './devices/manifest.ts';
import { directoryManifest } from './directory/manifest.ts';
import { e2eeManifest } from './e2ee/manifest.ts';
import { federationManifest } from './federation/manifest.ts';
import { federationClientManifest } from './federation-client/manifest.ts';
import { filtersManifest } from './filters/manifest.ts';
import { databaseMigrations } from './kernel/database/index.ts';
import { jobMigrations } from './kernel/jobs/index.ts';
import { migrationsOf, type OptionsOf, optionsOf, type SliceManifest } from './kernel/slices/index.ts';
import { streamMigrations } from './kernel/streams/index.ts';
import { mailManifest } from './mail/manifest.ts';
import { mediaManifest } from './media/manifest.ts';
import { modulesManifest } from './modules/manifest.ts';
import { oauthManifest } from './oauth/manifest.ts';
import { openIdManifest } from './openid/manifest.ts';
import { presenceManifest } from './presence/manifest.ts';
import { profilesManifest } from './profiles/manifest.ts';
import { pushManifest } from './push/manifest.ts';
import { pushersManifest } from './pushers/manifest.ts';
import { receiptsManifest } from './receipts/manifest.ts';
import { relationsManifest } from './relations/manifest.ts';
import { reportsManifest } from './reports/manifest.ts';
import { roomEngineManifest } from './room-engine/manifest.ts';
import { roomFederationManifest } from './room-federation/manifest.ts';
import { roomsManifest } from './rooms/manifest.ts';
import { searchManifest } from './search/manifest.ts';
import { serverNoticesManifest } from './server-notices/manifest.ts';
import { ssoManifest } from './sso/manifest.ts';
import { statisticsManifest } from './statistics/manifest.ts';
import { syncManifest } from './sync/manifest.ts';
import { thirdPartyIdsManifest } from './third-party-ids/manifest.ts';
import { threadSubscriptionsManifest } from './thread-subscriptions/manifest.ts';
import { toDeviceManifest } from './to-device/manifest.ts';
import { urlPreviewsManifest } from './url-previews/manifest.ts';

/**
 * The only list of all slices with options or tables. The generated documentation of the options, and the creation of
 * tables in new databases, follow its order.
 */
const manifests = [
  mailManifest,
  accountsManifest,
  thirdPartyIdsManifest,
  ssoManifest,
  oauthManifest,
  devicesManifest,
  profilesManifest,
  presenceManifest,
  accountDataManifest,
  filtersManifest,
  roomEngineManifest,
  roomFederationManifest,
  roomsManifest,
  relationsManifest,
  reportsManifest,
  receiptsManifest,
  threadSubscriptionsManifest,
  delayedEventsManifest,
  openIdManifest,
  toDeviceManifest,
  e2eeManifest,
  directoryManifest,
  searchManifest,
  syncManifest,
  pushManifest,
  pushersManifest,
  mediaManifest,
  urlPreviewsManifest,
  federationClientManifest,
  federationManifest,
  appservicesManifest,
  serverNoticesManifest,
  activeUsersManifest,
  statisticsManifest,
  consoleManifest,
  modulesManifest,
  adminManifest,
] as const;

export const slices: readonly SliceManifest[] = manifests;

/** Sections of options of all slices, in the order of the list of slices. */
export const sliceOptions: OptionsOf<(typeof manifests)[number]> = optionsOf(manifests);

/** Schema migrations of a database with the data store `state` only (option `databases`). */
export const stateMigrations = [
  ...databaseMigrations,
  ...streamMigrations,
  ...jobMigrations,
  ...slices.flatMap(({ stateMigrations: ofSlice = [] }) => ofSlice),
];

/** Schema migrations of the kernel and of all slices, in the order in which they are applied. */
export const migrations = [
  ...databaseMigrations,
  ...streamMigrations,
  ...jobMigrations,
  ...migrationsOf(slices),
];
