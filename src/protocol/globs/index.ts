export { foldCase } from './fold-case.ts';
export { compileGlob, compileWordGlob, type GlobMatcher, hasWord, MAX_GLOB_LENGTH } from './glob.ts';
