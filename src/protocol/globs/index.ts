export { foldCase } from './fold-case.ts';
export {
  compileGlob,
  compileWordGlob,
  compileWordLiteral,
  type GlobMatcher,
  hasWord,
  ignoringCase,
  MAX_GLOB_LENGTH,
} from './glob.ts';
