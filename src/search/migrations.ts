import type { Migration } from '../kernel/database/index.ts';
import { eventTexts } from './search-index.ts';

export const searchMigrations: readonly Migration[] = [
  { name: 'search/0001-event-texts', up: (schema) => schema.fullText(eventTexts) },
];
