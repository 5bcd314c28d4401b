// Stands for the table of operations, in unit tests.
export const ops = [
    ['relu', 1, 0, true],
    ['matmul', 2, 3, false],
    ['convolve2d', 2, 1, false, 'inputRows inputCols kernelRows kernelCols strideRows strideCols padding'],
];
