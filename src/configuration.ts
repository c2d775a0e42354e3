import { cachesSection } from './kernel/caches/config.ts';
import type { ConfigurationValues } from './kernel/config/index.ts';
import { databaseSection } from './kernel/database/config.ts';
import { httpSection } from './kernel/http/config.ts';
import { observabilitySection } from './kernel/observability/config.ts';
import { outboundSection } from './kernel/outbound/config.ts';
import { processSection } from './kernel/process/config.ts';
import { rateLimitsSection } from './kernel/rate-limits/config.ts';
import { serverSection } from './kernel/server/config.ts';
import { sliceOptions } from './slices.ts';

/** All sections of the configuration document, of the kernel and of the slices, in the order of the reference. */
export const sections = {
  server: serverSection,
  process: processSection,
  http: httpSection,
  database: databaseSection,
  caches: cachesSection,
  outbound: outboundSection,
  observability: observabilitySection,
  ...sliceOptions,
  rateLimits: rateLimitsSection,
};

/** The whole configuration: typed values by section. */
export type HearthConfiguration = ConfigurationValues<typeof sections>;
