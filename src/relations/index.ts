/** Relations between events: edits, threads, references, annotations and custom ones. */

export { relationMigrations } from './migrations.ts';
export { openRelations } from './open.ts';
export { RelationIndex } from './relation-index.ts';
export { Relations } from './relations.ts';
