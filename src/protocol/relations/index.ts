export { duplicateAnnotation } from './annotations.ts';
export { bundleRelations, type ChildFacts } from './bundle.ts';
export { type Relation, relationOf } from './relation.ts';
export { latestReplacement, type Replaceable, type Replacement } from './replacements.ts';
export {
  canBeThreadRoot,
  checkThreadRoot,
  MAIN_TIMELINE,
  MAX_THREAD_HOPS,
  summariseThread,
  type ThreadSummary,
} from './threads.ts';
