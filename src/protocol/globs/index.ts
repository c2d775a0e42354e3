export { foldCase } from './fold-case.ts';
export {
  compileGlob,
  compileWordGlob,
  compileWordLiteral,
  type GlobMatcher,
  hasWord,
  MAX_GLOB_LENGTH,
} from './glob.ts';
