import type { SliceManifest } from '../kernel/slices/index.ts';
import { federationClientSection } from './config.ts';
import { federationClientMigrations } from './migrations.ts';

export const federationClientManifest = {
  name: 'federation-client',
  options: { federationClient: federationClientSection },
  migrations: federationClientMigrations,
} satisfies SliceManifest;
