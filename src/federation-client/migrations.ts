import { destinationMigrations } from './destinations/migrations.ts';
import { keyMigrations } from './keys/migrations.ts';

export const federationClientMigrations = [...destinationMigrations, ...keyMigrations];
