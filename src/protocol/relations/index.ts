export { duplicateAnnotation } from './annotations.ts';
export { bundleRelations, type ChildAggregations } from './bundle.ts';
export { type Relation, relationOf } from './relation.ts';
export { latestReplacement, type ReplaceableEvent, type ReplacementEvent } from './replacements.ts';
export {
  canBeThreadRoot,
  checkThreadRoot,
  MAIN_TIMELINE,
  MAX_THREAD_HOPS,
  summariseThread,
  type ThreadSummary,
} from './threads.ts';
