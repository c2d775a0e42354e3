/** Relations between events: edits, threads, references, annotations and custom ones. */

export { relationMigrations } from './migrations.ts';
export { RelatedEvents } from './related-events.ts';
export { RelationIndex } from './relation-index.ts';
export { Relations } from './relations.ts';
export { relationRoutes } from './routes.ts';
export { ThreadList } from './thread-list.ts';
