import { accountsSection } from './accounts/config.ts';
import { appservicesSection } from './appservices/config.ts';
import { devicesSection } from './devices/config.ts';
import { directorySection } from './directory/config.ts';
import { federationSection } from './federation/config.ts';
import { federationClientSection } from './federation-client/config.ts';
import { cachesSection } from './kernel/caches/config.ts';
import type { ConfigurationValues } from './kernel/config/index.ts';
import { databaseSection } from './kernel/database/config.ts';
import { httpSection } from './kernel/http/config.ts';
import { mailSection } from './kernel/mail/config.ts';
import { observabilitySection } from './kernel/observability/config.ts';
import { outboundSection } from './kernel/outbound/config.ts';
import { processSection } from './kernel/process/config.ts';
import { rateLimitsSection } from './kernel/rate-limits/config.ts';
import { serverSection } from './kernel/server/config.ts';
import { mediaSection } from './media/config.ts';
import { modulesSection } from './modules/config.ts';
import { presenceSection } from './presence/config.ts';
import { profilesSection } from './profiles/config.ts';
import { pushSection } from './push/config.ts';
import { roomsSection } from './rooms/config.ts';
import { searchSection } from './search/config.ts';
import { serverNoticesSection } from './server-notices/config.ts';
import { ssoSection } from './sso/config.ts';
import { syncSection } from './sync/config.ts';

/** All sections of the configuration document, in the order of the reference. */
export const sections = {
  server: serverSection,
  process: processSection,
  http: httpSection,
  database: databaseSection,
  caches: cachesSection,
  outbound: outboundSection,
  observability: observabilitySection,
  mail: mailSection,
  accounts: accountsSection,
  sso: ssoSection,
  devices: devicesSection,
  profiles: profilesSection,
  presence: presenceSection,
  rooms: roomsSection,
  directory: directorySection,
  search: searchSection,
  sync: syncSection,
  push: pushSection,
  media: mediaSection,
  federationClient: federationClientSection,
  federation: federationSection,
  appservices: appservicesSection,
  serverNotices: serverNoticesSection,
  modules: modulesSection,
  rateLimits: rateLimitsSection,
};

/** The whole configuration: typed values by section. */
export type HearthConfiguration = ConfigurationValues<typeof sections>;
