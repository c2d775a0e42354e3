export { foldCase } from './fold-case.ts';
export { compileGlob, compileWordGlob, containsAsWords, type GlobMatcher, MAX_GLOB_LENGTH } from './glob.ts';
