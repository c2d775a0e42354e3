export { type AnnotationIdentity, annotationOf, canBeAnnotated, duplicateAnnotation } from './annotations.ts';
export { bundleRelations, type ChildFacts } from './bundle.ts';
export { type Mentions, mentionsOf } from './mentions.ts';
export { type Relation, relationOf, repliedToBy } from './relation.ts';
export {
  applyReplacement,
  compareReplacements,
  isValidReplacement,
  latestReplacement,
  type Replaceable,
  type Replacement,
} from './replacements.ts';
export {
  canBeThreadRoot,
  checkThreadRoot,
  MAIN_TIMELINE,
  MAX_THREAD_HOPS,
  summariseThread,
  type ThreadSummary,
  threadRootOf,
} from './threads.ts';
