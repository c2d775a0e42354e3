/** Relations between events: edits, threads, references, annotations and custom relation types. */

export { relationMigrations } from './migrations.ts';
export { openRelations } from './open.ts';
export { RelationIndex } from './relation-index.ts';
export { Relations } from './relations.ts';
