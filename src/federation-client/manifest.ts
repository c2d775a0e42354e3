import type { SliceManifest } from '../kernel/slices/index.ts';
import { federationClientMigrations } from './migrations.ts';

export const federationClientManifest: SliceManifest = {
  name: 'federation-client',
  migrations: federationClientMigrations,
};
